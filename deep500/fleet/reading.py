"""Reading outcomes of any format, with a report on what was wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path

import polars as pl

from deep500.core.errors import Deep500Error, FleetError
from deep500.core.registry import Registry
from deep500.core.texts import message_of, shown_path
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.outcome_table import FIELDS, OutcomeTable, conform
from deep500.fleet.reader import Reader, head_of

__all__ = ["READERS", "read_outcomes"]

#: The readers, by the names of their files.
READERS = Registry("reader of outcomes", "deep500.fleet.readers")

#: What a reader may meet in a file that is none of its own kind.
_REFUSALS = (
    Deep500Error,
    OSError,
    RecursionError,
    UnicodeError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)

_TIMES = ("submitted", "started", "ended")


def read_outcomes(paths: Iterable[str | PathLike[str]], format: str | None = None) -> tuple[OutcomeTable, InputReport]:
    """Read outcomes from files and folders.

    A folder that is no format by itself is searched for files that are; hidden files are left alone, links to other
    folders are not followed, and no file is read twice. Files of several formats go together.

    Args:
        paths: Files and folders. What is compressed by gzip is decompressed.
        format: A name of :data:`READERS`; by default each file's own is told from its beginning.

    Returns:
        The table, and what was read and was wrong with it.

    Raises:
        FleetError: A path is not there, or no outcome at all was found.
    """
    named = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    given = [Path(path) for path in named]
    if not given or not all(map(fspath, named)):
        what = "A path is an empty text" if given else "No file was named"
        raise FleetError(f"{what}; name files or folders that hold outcomes.")
    search = _Search(format)
    frames = [frame for path in given for frame in search.frames(path) if frame.height]
    report = search.report
    if not frames:
        raise FleetError(_nothing(given, report))
    return OutcomeTable(_together(frames, report)), report


class _Search:
    """The search for files in what was given."""

    def __init__(self, format: str | None) -> None:
        self.report = InputReport()
        self._forced = None if format is None else (format, READERS.get(format)())
        self._readers: list[tuple[str, Reader]] = [(name, READERS.get(name)()) for name in READERS]
        self._seen: set[Path] = set()

    def frames(self, path: Path) -> Iterator[pl.DataFrame]:
        """Yield the outcomes of a path that the user named.

        Raises:
            FleetError: It is not there, or cannot be looked at.
        """
        try:
            if not path.exists():
                raise FleetError(f"There is no {shown_path(path)}.")
            if path.is_file() or not path.is_dir():
                head_of(path)
        except (OSError, ValueError) as error:
            if isinstance(error, FleetError):
                raise
            raise FleetError(f"{str(path)!r} cannot be read: {message_of(error)}.") from error
        yield from self._frames(path, path)

    def _frames(self, path: Path, root: Path) -> Iterator[pl.DataFrame]:
        try:
            real = path.resolve()
            if real in self._seen:
                self.report.add(
                    ProblemKind.DUPLICATE, str(root), 1, [_within(path, root)], "the same file was read once"
                )
                return
            self._seen.add(real)
            found = self._told(path)
            inner = sorted(path.iterdir()) if found is None and path.is_dir() else []
        except (OSError, RuntimeError, FleetError) as error:  # a loop of links, no permission, a device
            self.report.add(ProblemKind.MALFORMED, str(root), 1, [f"{_within(path, root)}: {message_of(error)}"])
            return
        if found is not None:
            yield _of_one(path, found[1], found[0], self.report)
        elif path.is_dir():
            if not inner:
                self.report.add(ProblemKind.EMPTY, str(root), 1, [_within(path, root)])
            for each in inner:
                if each.name.startswith("."):
                    continue
                if _is_link_to_folder(each):  # it may lead to all that the machine holds
                    why = "links to folders are not followed; name the folder"
                    self.report.add(ProblemKind.UNRECOGNISED, str(root), 1, [_within(each, root)], why)
                    continue
                yield from self._frames(each, root)
        else:
            empty = not head_of(path).strip()
            kind = ProblemKind.EMPTY if empty else ProblemKind.UNRECOGNISED
            self.report.add(kind, str(root), 1, [_within(path, root)] if path != root else [])

    def _told(self, path: Path) -> tuple[str, Reader] | None:
        """Return the format of a path, ``None`` for none or a folder of files."""
        head = head_of(path)
        if self._forced is not None:
            one_file = not path.is_dir() and bool(head.strip())
            return self._forced if one_file or self._forced[1].matches(path, head) else None
        if not head.strip() and not path.is_dir():
            return None
        return next(((name, reader) for name, reader in self._readers if reader.matches(path, head)), None)


def _is_link_to_folder(path: Path) -> bool:
    try:
        return path.is_symlink() and path.is_dir()
    except OSError:  # what cannot be looked at is told when it is read
        return False


def _within(path: Path, root: Path) -> str:
    return str(path) if path == root else str(path.relative_to(root))


def _of_one(path: Path, reader: Reader, name: str, report: InputReport) -> pl.DataFrame:
    source = str(path)
    report.formats[source] = name
    report.rows[source] = 0
    try:
        frame = conform(reader.read(path, report))
    except _REFUSALS as error:
        report.add(ProblemKind.MALFORMED, source, examples=[message_of(error)], effect="the file was left out")
        return pl.DataFrame(schema=FIELDS)
    frame = _in_time(_once(_finite(frame, source, report), source, report), source, report)
    report.rows[source] = frame.height
    if not frame.height and not any(problem.source == source for problem in report.problems):
        report.add(ProblemKind.EMPTY, source)
    return frame


def _together(frames: list[pl.DataFrame], report: InputReport) -> pl.DataFrame:
    """Return all outcomes in one frame, each once: files that lie at two places say nothing twice."""
    if len(frames) == 1:
        return frames[0]
    kinds: dict[str, set[pl.DataType]] = {}
    for frame in frames:
        for name, dtype in frame.schema.items():
            kinds.setdefault(name, set()).add(dtype)
    mixed = [name for name, found in kinds.items() if name not in FIELDS and pl.String in found and len(found) > 1]
    names = [f"the label {name!r}" for name in mixed]
    report.add(
        ProblemKind.MALFORMED,
        "all files together",
        len(mixed),
        names,
        "labels with values of several kinds became texts",
    )
    frames = [frame.with_columns(pl.col(set(mixed) & set(frame.columns)).cast(pl.String)) for frame in frames]
    try:
        whole = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise FleetError(
            f"The files cannot be put together: {str(error).splitlines()[0]}. Labels of one name need one dtype."
        ) from error
    return _once(whole, "all files together", report)


def _once(frame: pl.DataFrame, source: str, report: InputReport) -> pl.DataFrame:
    """Return each row once; rows that differ in anything, such as in when they ran, are reruns and stay."""
    if frame.hash_rows().n_unique() == frame.height:  # equal rows have equal hashes
        return frame
    kept = frame.unique(maintain_order=True, keep="first")
    more = frame.height - kept.height
    if more:
        twice = frame.filter(frame.is_duplicated()).head(3)
        report.add(ProblemKind.DUPLICATE, source, more, [f"{k} of {g}" for k, g in twice.select("key", "group").rows()])
    return kept


def _finite(frame: pl.DataFrame, source: str, report: InputReport) -> pl.DataFrame:
    """Return the rows with numbers as unknown that are none, or that cannot be."""
    numbers = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    whole = frame.select(pl.col(numbers).is_nan().any() | pl.col(numbers).is_infinite().any())
    broken = [name for name in numbers if whole[name][0]]
    count = sum(int(frame[name].is_finite().not_().sum()) for name in broken)
    report.add(ProblemKind.MALFORMED, source, count, broken, "numbers that are none were taken as unknown")
    if broken:
        frame = frame.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in broken)
    negative = (pl.col("gpus") < 0).fill_null(False) | (pl.col("cost") < 0).fill_null(False)
    keys = frame.filter(negative)["key"]
    if keys.len():
        report.add(
            ProblemKind.MALFORMED, source, keys.len(), keys.head(3), "GPUs and costs below zero were taken as unknown"
        )
        frame = frame.with_columns(
            pl.when(pl.col(name) >= 0).then(pl.col(name)).alias(name) for name in ("gpus", "cost")
        )
    return frame


def _in_time(frame: pl.DataFrame, source: str, report: InputReport) -> pl.DataFrame:
    """Return the rows with times taken as unknown where they contradict each other."""
    backwards = (pl.col("ended") < pl.col("started")).fill_null(False)
    early = (pl.col("started") < pl.col("submitted")).fill_null(False)
    unstarted = (pl.col("started").is_null() & (pl.col("ended") < pl.col("submitted"))).fill_null(False)
    wrong = frame.filter(backwards | early | unstarted)
    if not wrong.height:
        return frame
    report.add(ProblemKind.CLOCK_SKEW, source, wrong.height, wrong["key"].head(3).to_list())
    unknown = pl.lit(None, pl.Float64)
    return frame.with_columns(
        pl.when(early | unstarted).then(unknown).otherwise(pl.col("submitted")).alias("submitted"),
        pl.when(backwards).then(unknown).otherwise(pl.col("started")).alias("started"),
        pl.when(backwards | unstarted).then(unknown).otherwise(pl.col("ended")).alias("ended"),
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
