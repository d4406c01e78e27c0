"""Many outcomes as a table with a column for each field and each label."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import FleetError
from deep500.core.files import write_atomically
from deep500.core.texts import shown, shown_path
from deep500.fleet.libraries import POLARS
from deep500.fleet.outcome import STATUSES, Outcome

POLARS.require("Reading outcomes")
import polars as pl  # noqa: E402 - what it is needed for is said first

__all__ = ["FIELDS", "OutcomeTable", "conform"]

#: The columns that every table has, in their order, with their dtypes; all others are labels.
FIELDS: dict[str, Any] = {
    "key": pl.String,
    "group": pl.String,
    "status": pl.Enum(STATUSES),
    "cause": pl.String,
    "submitted": pl.Float64,
    "started": pl.Float64,
    "ended": pl.Float64,
    "gpus": pl.Float64,
    "cost": pl.Float64,
}

_SUFFIXES = (".jsonl", ".parquet")


class OutcomeTable:
    """Outcomes as a Polars data frame: the columns :data:`FIELDS`, then one for each label.

    Attributes:
        frame: The data frame. It is not to be changed in place.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        """Take a data frame; columns of :data:`FIELDS` that are not there are unknown.

        Raises:
            FleetError: A column has values that it cannot have.
        """
        self.frame = conform(frame)

    @classmethod
    def from_outcomes(cls, outcomes: Iterable[Outcome]) -> OutcomeTable:
        """Return the table of records.

        Raises:
            FleetError: A label has the name of a field, or values of dtypes that do not go together.
        """
        rows = []
        for outcome in outcomes:
            taken = sorted(set(outcome.labels) & set(FIELDS))
            if taken:
                raise FleetError(f"A label of {outcome.key!r} is named {taken[0]!r}, which is a field; rename it.")
            rows.append({**{name: getattr(outcome, name) for name in FIELDS}, **outcome.labels})
        try:
            frame = pl.DataFrame(rows, infer_schema_length=None, strict=True) if rows else pl.DataFrame(schema=FIELDS)
        except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise FleetError(f"Labels of one name have values of different kinds: {error}") from error
        return cls(frame)

    def __len__(self) -> int:
        """The number of outcomes."""
        return self.frame.height

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels."""
        return tuple(name for name in self.frame.columns if name not in FIELDS)

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the records, one after the other."""
        for row in self.frame.iter_rows(named=True):
            yield _outcome(row)

    def with_frame(self, frame: pl.DataFrame) -> OutcomeTable:
        """Return the table of another data frame, such as some of the rows."""
        return OutcomeTable(frame)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the table; :func:`deep500.fleet.read_outcomes` reads it again.

        Args:
            path: A name that ends with ``.jsonl`` (a JSON object a line, without what is unknown) or ``.parquet``.

        Raises:
            FleetError: The name ends with neither.
            FileWriteError: The file cannot be written.
        """
        suffix = check_table_path(path)
        if suffix == ".parquet":
            buffer = io.BytesIO()
            self.frame.write_parquet(buffer)
            write_atomically(path, buffer.getvalue(), "table of outcomes")
            return
        lines = (json.dumps(_known(row), ensure_ascii=False) for row in self.frame.iter_rows(named=True))
        write_atomically(path, "".join(f"{line}\n" for line in lines), "table of outcomes")


def check_table_path(path: str | PathLike[str]) -> str:
    """Return what the name of a table ends with.

    Raises:
        FleetError: It is none that a table can be written to.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise FleetError(
            f"Outcomes cannot be written to {shown_path(path)}: accepted are names that end with "
            f"{' or '.join(_SUFFIXES)}."
        )
    return suffix


def conform(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a data frame with the columns :data:`FIELDS` in their order and dtypes, then the labels.

    A cost that is unknown is computed from the times: hours x GPUs, hours where there was no GPU.

    Raises:
        FleetError: A column has values that it cannot have, or one that is needed is not there.
    """
    for name in ("key", "group", "status"):
        if name not in frame.columns:
            raise FleetError(f"A table of outcomes has no column {name!r}; it has {shown(list(frame.columns))}.")
    columns = [
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in FIELDS.items()
    ]
    labels = [pl.col(name) for name in frame.columns if name not in FIELDS]
    try:
        made = frame.select(columns + labels)
    except pl.exceptions.PolarsError as error:
        raise FleetError(
            f"A table of outcomes holds what it cannot: {str(error).splitlines()[0]}. Statuses are "
            f"{', '.join(STATUSES)}; times, GPUs and costs are numbers."
        ) from error
    unknown = made.select(pl.col("key", "group", "status").null_count()).row(0)
    if any(unknown):
        raise FleetError(f"{sum(unknown)} outcomes have no key, no group or no status; all three are needed.")
    hours = (pl.col("ended") - pl.col("started")) / 3600.0
    count = pl.when(pl.col("gpus") > 0).then(pl.col("gpus")).otherwise(1.0)
    return made.with_columns(pl.col("cost").fill_null(pl.when(hours >= 0).then(hours * count)))


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _outcome(row: Mapping[str, Any]) -> Outcome:
    labels = {name: value for name, value in row.items() if name not in FIELDS and value is not None}
    return Outcome(**{name: row[name] for name in FIELDS}, labels=labels)
