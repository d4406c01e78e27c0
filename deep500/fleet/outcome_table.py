"""Many outcomes as a table with a column for each field and each label."""

from __future__ import annotations

import io
import json
import math
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
        rows: list[dict[str, Any]] = []
        kinds: dict[str, type] = {}
        for outcome in outcomes:
            for name, value in outcome.labels.items():
                kind = float if type(value) is int else type(value)
                if kinds.setdefault(name, kind) is not kind:
                    raise FleetError(
                        f"The label {name!r} of {outcome.key!r} is {shown(value)}, others are of the kind "
                        f"{kinds[name].__name__}. Labels of one name need values of one kind."
                    )
            taken = sorted(set(outcome.labels) & set(FIELDS))
            if taken:
                raise FleetError(f"A label of {outcome.key!r} is named {taken[0]!r}, which is a field; rename it.")
            rows.append({**{name: getattr(outcome, name) for name in FIELDS}, **outcome.labels})
        try:
            frame = pl.DataFrame(rows, infer_schema_length=None, strict=True) if rows else pl.DataFrame(schema=FIELDS)
        except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise FleetError(f"The outcomes cannot be put into a table: {error}") from error
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
    columns = [_field(name, frame.schema.get(name)) for name in FIELDS]
    labels = [_label(name, dtype) for name, dtype in frame.schema.items() if name not in FIELDS]
    try:
        made = frame.select(columns + labels)
    except pl.exceptions.PolarsError as error:
        raise FleetError(
            f"A table of outcomes holds what it cannot: {str(error).splitlines()[0]}. Statuses are "
            f"{', '.join(STATUSES)}; times, GPUs and costs are numbers."
        ) from error
    needed = pl.col("key", "group", "status")
    unknown = made.select((needed.is_null() | (needed.cast(pl.String) == "")).sum()).row(0)
    if any(unknown):
        raise FleetError(f"{sum(unknown)} outcomes have no key, no group or no status; all three are needed.")
    hours = (pl.col("ended") - pl.col("started")) / 3600.0
    count = pl.when(pl.col("gpus") > 0).then(pl.col("gpus")).otherwise(1.0)
    return made.with_columns(pl.col("cost").fill_null(pl.when(hours >= 0).then(hours * count)))


def _field(name: str, dtype: pl.DataType | None) -> pl.Expr:
    """Return a field's column of what is there.

    Raises:
        FleetError: It holds what the field cannot be made of.
    """
    target = FIELDS[name]
    if dtype is None or dtype == pl.Null:
        return pl.lit(None).cast(target).alias(name)
    column = pl.col(name)
    if dtype.is_temporal() and target == pl.Float64:
        if dtype == pl.Duration or name not in ("submitted", "started", "ended") or dtype == pl.Time:
            raise FleetError(f"The column {name!r} of a table of outcomes is of dtype {dtype}; numbers are needed.")
        return (column.cast(pl.Datetime("us")).dt.epoch("us") / 1e6).alias(name)
    if target == pl.Float64 and not (dtype.is_numeric() or dtype == pl.String):
        raise FleetError(f"The column {name!r} of a table of outcomes is of dtype {dtype}; numbers are needed.")
    texts = dtype in (pl.String, pl.Categorical, pl.Enum)
    if (
        target != pl.Float64
        and not texts
        and (dtype.is_nested() or dtype in (pl.Binary, pl.Object) or name == "status")
    ):
        raise FleetError(f"The column {name!r} of a table of outcomes is of dtype {dtype}; texts are needed.")
    return (column.cast(pl.String) if isinstance(target, pl.Enum) and texts else column).cast(target).alias(name)


def _label(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a label's column: texts, numbers or truths.

    Raises:
        FleetError: It holds something else.
    """
    column = pl.col(name)
    if dtype == pl.Boolean or dtype == pl.String or dtype in (pl.Categorical, pl.Enum) or dtype.is_numeric():
        return column.cast(pl.Float64) if dtype.is_decimal() else column
    if dtype.is_temporal() or dtype == pl.Null:
        return column.cast(pl.String)
    raise FleetError(f"The label {name!r} is of dtype {dtype}; texts, numbers and truths are accepted.")


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a row, and can be said in JSON."""
    return {
        name: value
        for name, value in row.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


def _outcome(row: Mapping[str, Any]) -> Outcome:
    labels = {name: value for name, value in row.items() if name not in FIELDS and value is not None}
    return Outcome(**{name: row[name] for name in FIELDS}, labels=labels)
