"""Tables with a separator and without quotes, of any size: read in pieces, every line checked.

Readers of CSV fill up lines that are too short, cut those that are too long and take a text in a column of numbers as
unknown, all in silence. Here each line is split by itself, so that what does not fit is counted.
"""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from deep500.core.errors import FleetError
from deep500.core.texts import escaped
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import blocks_of, head_of, head_text
from deep500.fleet.readers._values import UNKNOWN_WORDS

__all__ = ["Columns", "column_names", "read_table"]

#: No table of outcomes is wider; a file that is has not got this format.
_WIDEST = 1000

_REPLACED = "\N{REPLACEMENT CHARACTER}"
_EFFECT = "lines with a wrong number of fields were left out; fields that are no number or no time are unknown"


@dataclass(frozen=True)
class Columns:
    """What is wanted of a table.

    Attributes:
        names: All columns of the file in order; ``None`` where its first line names them.
        texts: Columns that are wanted as texts.
        numbers: Columns that are wanted as numbers.
        times: Columns that are wanted as seconds since 1970: dates and times (UTC without a zone) or numbers.
        separator: What stands between the fields.
    """

    names: Sequence[str] | None
    texts: Sequence[str]
    numbers: Sequence[str] = ()
    times: Sequence[str] = ()
    separator: str = ","

    @property
    def wanted(self) -> tuple[str, ...]:
        """All that is wanted."""
        return (*self.texts, *self.numbers, *self.times)


def column_names(head: bytes, separator: str) -> list[str]:
    """Return the fields of the first line of a file, without quotes."""
    first = head_text(head).lstrip("\r\n").split("\n", 1)[0]
    return [name.strip().strip('"') for name in first.rstrip("\r").split(separator)]


def read_table(
    path: Path, report: InputReport, columns: Columns, make: Callable[[pl.LazyFrame], pl.LazyFrame]
) -> pl.DataFrame:
    """Return what is made of a table, and count what was wrong with it.

    Args:
        path: The file, compressed or not.
        report: Where faults are counted.
        columns: What is wanted. A column that the file does not have is unknown throughout.
        make: Makes a query of the rows: the columns that are wanted, and ``line``, the number of the line.

    Raises:
        FleetError: The file cannot be read.
    """
    head = head_of(path)
    names = columns.names
    if names is None:
        names = column_names(head, columns.separator)
    if len(names) > _WIDEST:
        raise FleetError(f"It has {len(names)} columns; a table of outcomes has at most {_WIDEST}.")
    with _as_utf8(path, head, report) as file:
        if not file.stat().st_size:
            return make(pl.LazyFrame(schema=_schema(columns))).collect()
        lines = _lines(file, columns.names is None, b'"' in head.split(b"\n", 1)[0])
        rows = _fields(lines, _unique(names), columns)
        faulty = pl.col("wrong") | pl.col("unread")
        counted = rows.select(pl.col("wrong").sum(), (pl.col("unread") & ~pl.col("wrong")).sum())
        made, counts = pl.collect_all(
            [make(rows.filter(~pl.col("wrong")).select("line", *columns.wanted)), counted], engine="streaming"
        )
        wrong = sum(counts.row(0))
        if wrong:
            first = rows.filter(faulty).select("line", "text").head(3).collect(engine="streaming")
            examples = [f"line {line}: {escaped(text[:60])}" for line, text in first.sort("line").rows()]
            report.add(ProblemKind.MALFORMED, str(path), wrong, examples, _EFFECT)
    return made


def _schema(columns: Columns) -> dict[str, type[pl.DataType]]:
    texts: dict[str, type[pl.DataType]] = dict.fromkeys(columns.texts, pl.String)
    return {"line": pl.UInt32, **texts, **dict.fromkeys((*columns.numbers, *columns.times), pl.Float64)}


def _lines(file: Path, header: bool, quoted: bool) -> pl.LazyFrame:
    lines = pl.scan_lines(str(file), name="text", row_index_name="line", row_index_offset=1, glob=False)
    text = pl.col("text").str.strip_chars_end("\r")
    if quoted:  # some programs quote every field; a separator within quotes makes a line that is counted
        text = text.str.replace_all('"', "", literal=True)
    lines = lines.with_columns(text).filter(pl.col("text").str.strip_chars() != "")
    return lines.slice(1) if header else lines


def _fields(lines: pl.LazyFrame, names: list[str], columns: Columns) -> pl.LazyFrame:
    """Return the rows with the columns that are wanted, ``wrong`` (number of fields) and ``unread`` (a number)."""
    text = pl.col("text")
    wrong = text.str.count_matches(columns.separator, literal=True) != len(names) - 1
    split = text.str.split_exact(columns.separator, len(names) - 1).struct.rename_fields(names)
    rows = lines.select("line", "text", wrong.alias("wrong"), split.alias("fields")).unnest("fields", separator=".")
    there = {name: pl.col(f"fields.{name}").str.strip_chars() for name in columns.wanted if name in names}
    made = [_known(there[name]).alias(name) for name in columns.texts if name in there]
    unread = []
    for name in (*columns.numbers, *columns.times):
        if name in there:
            raw = there[name]
            value = _number(raw) if name in columns.numbers else _time(raw)
            made.append(value.alias(name))
            unread.append(value.is_null() & raw.is_not_null() & ~raw.is_in(UNKNOWN_WORDS))
    missing = [
        pl.lit(None, pl.String if name in columns.texts else pl.Float64).alias(name)
        for name in columns.wanted
        if name not in there
    ]
    return rows.select(
        "line",
        "text",
        "wrong",
        *made,
        *missing,
        (pl.any_horizontal(unread) if unread else pl.lit(False)).alias("unread"),
    )


def _known(raw: pl.Expr) -> pl.Expr:
    return pl.when(raw != "").then(raw)


def _number(raw: pl.Expr) -> pl.Expr:
    value = raw.cast(pl.Float64, strict=False)
    return pl.when(value.is_finite()).then(value)


def _time(raw: pl.Expr) -> pl.Expr:
    text = raw.str.replace("T", " ", literal=True).str.replace("Z", "+00:00", literal=True)
    text = pl.when(text.str.len_bytes() == len("2020-01-01 00:00")).then(text + ":00").otherwise(text)
    naive = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
    zoned = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", time_unit="us", time_zone="UTC", strict=False)
    return pl.coalesce(naive.dt.epoch("us") / 1e6, zoned.dt.epoch("us") / 1e6, _number(raw))


def _unique(names: Sequence[str]) -> list[str]:
    """Return the names; a name that comes again has a number."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name}\0{seen[name]}")
    return made


@contextmanager
def _as_utf8(path: Path, head: bytes, report: InputReport) -> Iterator[Path]:
    """Give the file itself, or where it is no plain UTF-8 a copy that is, which is removed afterwards."""
    with path.open("rb") as file:
        plain = file.read(2) == head[:2] and not head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"))
    if plain and _is_utf8(path):
        yield path
        return
    handle, name = tempfile.mkstemp(prefix="deep500-table-", suffix=".txt")
    try:
        with open(handle, "wb") as copy:
            wrong, number = 0, 1
            examples: list[str] = []
            encoding = "utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
            decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            for block in blocks_of(path):
                text = decoder.decode(block)
                found = text.count(_REPLACED) - (block.count(_REPLACED.encode()) if encoding != "utf-16" else 0)
                if found > 0 and len(examples) < 3:
                    where = text.count("\n", 0, text.index(_REPLACED))
                    examples.append(f"line {number + where}")
                wrong += max(found, 0)
                number += text.count("\n")
                copy.write(text.encode("utf-8", "replace"))
            copy.write(decoder.decode(b"", final=True).encode("utf-8", "replace"))
        report.add(ProblemKind.ENCODING, str(path), wrong, examples)
        yield Path(name)
    finally:
        os.unlink(name)


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in blocks_of(path):
            if decoder.getstate()[0] or not block.isascii():
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
