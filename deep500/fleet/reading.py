"""Reading outcomes of any format, with a report on what was wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

import polars as pl

from deep500.core.errors import Deep500Error, FleetError
from deep500.core.registry import Registry
from deep500.core.texts import shown_path
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.outcome_table import FIELDS, OutcomeTable, conform
from deep500.fleet.reader import Reader, head_of

__all__ = ["READERS", "read_outcomes"]

#: The readers, by the names of their files.
READERS = Registry("reader of outcomes", "deep500.fleet.readers")


def read_outcomes(paths: Iterable[str | PathLike[str]], format: str | None = None) -> tuple[OutcomeTable, InputReport]:
    """Read outcomes from files and folders.

    A folder that is no format by itself is searched for files that are. Files of several formats go together.

    Args:
        paths: Files and folders. Names that end with ``.gz`` are decompressed.
        format: A name of :data:`READERS`; by default each file's own is told from its beginning.

    Returns:
        The table, and what was read and was wrong with it.

    Raises:
        FleetError: A path is not there, or no outcome at all was found.
    """
    report = InputReport()
    given = [Path(path) for path in paths]
    if not given:
        raise FleetError("No file was named; name files or folders that hold outcomes.")
    reader = None if format is None else READERS.get(format)()
    frames = [frame for path in given for frame in _read(path, reader, format, report)]
    frames = [frame for frame in frames if frame.height]
    if not frames:
        raise FleetError(_nothing(given, report))
    try:
        whole = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise FleetError(
            f"The files cannot be put together: {str(error).splitlines()[0]}. Labels of one name need one dtype."
        ) from error
    return OutcomeTable(whole), report


def _read(path: Path, reader: Reader | None, name: str | None, report: InputReport) -> Iterable[pl.DataFrame]:
    if not path.exists():
        raise FleetError(f"There is no {shown_path(path)}.")
    if reader is not None and name is not None:
        yield _of_one(path, reader, name, report)
        return
    found = _told(path)
    if found is not None:
        yield _of_one(path, READERS.get(found)(), found, report)
    elif path.is_dir():
        for inner in sorted(path.iterdir()):
            if not inner.name.startswith("."):
                yield from _read(inner, None, None, report)
    elif not head_of(path).strip():
        report.add(ProblemKind.EMPTY, str(path))
    else:
        report.add(ProblemKind.UNRECOGNISED, str(path))


def _told(path: Path) -> str | None:
    head = head_of(path)
    return next((name for name in READERS if READERS.get(name)().matches(path, head)), None)


def _of_one(path: Path, reader: Reader, name: str, report: InputReport) -> pl.DataFrame:
    source = str(path)
    try:
        frame = conform(reader.read(path, report))
    except Deep500Error as error:
        report.rows[source] = 0
        report.formats[source] = name
        report.add(ProblemKind.MALFORMED, source, examples=[str(error)])
        return pl.DataFrame(schema=FIELDS)
    frame = _in_time(_once(frame, source, report), source, report)
    report.rows[source] = frame.height
    report.formats[source] = name
    if not frame.height and not any(problem.source == source for problem in report.problems):
        report.add(ProblemKind.EMPTY, source)
    return frame


def _once(frame: pl.DataFrame, source: str, report: InputReport) -> pl.DataFrame:
    """Return each row once; rows that differ in anything, such as in when they ran, are reruns and stay."""
    kept = frame.unique(maintain_order=True)
    more = frame.height - kept.height
    if more:
        twice = frame.filter(frame.is_duplicated()).head(3)
        report.add(ProblemKind.DUPLICATE, source, more, [f"{k} of {g}" for k, g in twice.select("key", "group").rows()])
    return kept


def _in_time(frame: pl.DataFrame, source: str, report: InputReport) -> pl.DataFrame:
    """Return the rows with times taken as unknown where they contradict each other."""
    backwards = (pl.col("ended") < pl.col("started")).fill_null(False)
    early = (pl.col("started") < pl.col("submitted")).fill_null(False)
    wrong = frame.filter(backwards | early)
    if not wrong.height:
        return frame
    report.add(ProblemKind.CLOCK_SKEW, source, wrong.height, wrong["key"].head(3).to_list())
    unknown = pl.lit(None, pl.Float64)
    return frame.with_columns(
        pl.when(early).then(unknown).otherwise(pl.col("submitted")).alias("submitted"),
        pl.when(backwards).then(unknown).otherwise(pl.col("started")).alias("started"),
        pl.when(backwards).then(unknown).otherwise(pl.col("ended")).alias("ended"),
    )


def _nothing(given: list[Path], report: InputReport) -> str:
    told = "; ".join(
        f"{shown_path(p.source)}: {p.kind.value}{f' ({p.examples[0]})' if p.examples else ''}"
        for p in report.problems[:3]
    )
    return (
        f"No outcome was found in {', '.join(map(str, map(shown_path, given[:3])))}{' ...' if len(given) > 3 else ''}"
        f"{f' ({told})' if told else ''}. Formats that are read: {', '.join(READERS)}."
    )
