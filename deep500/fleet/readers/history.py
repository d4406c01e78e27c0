"""Histories of commits and jobs: a line a commit, a column a job."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep500.core.errors import FleetError
from deep500.core.texts import message_of
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import Reader, head_text, text_of
from deep500.fleet.readers._rows import Rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["HistoryReader"]

_PASSED = ("passed", "pass", "success", "successful", "succeeded", "ok", "green", "true", "1", "1.0")
_FAILED = ("failed", "fail", "failure", "error", "errored", "broken", "red", "false", "0", "0.0")
_CANCELLED = ("cancelled", "canceled", "cancel", "aborted", "killed")
_TIMEOUT = ("timeout", "timed_out", "timed out", "timedout")
_NOTHING = ("", "nan", "na", "n/a", "none", "null", "-", "?")
_MISSING = (
    "missing", "skipped", "skip", "neutral", "pending", "queued", "running", "in_progress", "stale", "not run",
    "unknown",
)  # fmt: skip

#: Status and cause of each word.
_WORDS: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(_PASSED, ("passed", None)),
    **dict.fromkeys(_FAILED, ("failed", None)),
    **dict.fromkeys(_CANCELLED, ("cancelled", None)),
    **dict.fromkeys(_TIMEOUT, ("timeout", None)),
    **dict.fromkeys(_NOTHING, ("missing", None)),
    **{word: ("missing", None if word == "missing" else word) for word in _MISSING},
    "no_match": ("no_match", None),
    "environment": ("environment", None),
    "unreachable": ("unreachable", None),
}

_COMMITS = ("commit", "sha", "head_sha", "hash", "revision", "rev", "change", "changeset", "build", "run", "id", "")
_TIMES = ("time", "date", "timestamp", "datetime", "committed_at", "created_at")

#: Formats of their own that have a separator, too; so many of these columns name them.
_OTHERS = (
    {"job_id", "state", "start_time", "end_time"},
    {"Name", "Verdict", "Cycle"},
    {"job_name", "task_name"},
    {"key", "group", "status"},
)
_SEPARATORS = "\t,;"


class HistoryReader(Reader):
    """A table with a line for each commit and a column for each job, separated by tabs, commas or semicolons.

    The first line names the columns: the commit, perhaps a time (``time``, ``date`` or ``timestamp``; it becomes
    ``submitted``), and the jobs. A table without a column for the commit counts its lines instead. Cells are words
    such as ``pass``, ``failure``, ``cancelled``, ``timeout`` and ``skipped``, or numbers: **1 has passed, 0 has
    failed**, as in the ``combined.csv`` of PyTorch's study of its jobs. An empty cell is ``missing``.
    """

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether most cells of its first lines are words for an outcome."""
        if path.is_dir() or (b"\0" in head[:1024] and not head.startswith((b"\xff\xfe", b"\xfe\xff"))):
            return False
        text = head_text(head)
        lines = text.lstrip("\r\n").splitlines()[:20]
        if len(head) >= 65536:
            lines = lines[:-1] or lines
        if len(lines) < 2 or lines[0].lstrip()[:1] in ("{", "[", "<"):
            return False
        header, *rows = list(_parsed("\n".join(lines), _separator(lines[0])))
        if len(header) < 2 or any(other <= set(header) for other in _OTHERS):
            return False
        first, when = _roles(header, rows)
        jobs = [index for index in range(first, len(header)) if index != when]
        cells = [row[index] for row in rows if len(row) == len(header) for index in jobs]
        filled = [cell for cell in cells if cell.strip()]
        return bool(filled) and sum(_word(cell) is not None for cell in filled) > len(filled) / 2

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the jobs of all commits, commit by commit."""
        text = text_of(path, report).lstrip("\r\n")
        table = _numbered(text, _separator(text.split("\n", 1)[0]))
        header = [name.strip() for name in next(table, (0, []))[1]]
        rows = Rows(path, report)
        sample = []
        for entry in table:
            sample.append(entry)
            if len(sample) == 20:
                break
        first, when = _roles(header, [row for _, row in sample])
        if not header[first:]:
            raise FleetError("Its first line names no jobs; a column for the commit and one for each job are needed.")
        jobs = [index for index in range(first, len(header)) if index != when]
        for index in jobs:
            if not header[index]:
                rows.fault(ProblemKind.INCOMPLETE, f"column {index + 1} has no name")
        count = 0
        for entries in (sample, table):
            for number, row in entries:
                if len(row) != len(header):
                    rows.fault(ProblemKind.MALFORMED, f"line {number} has {len(row)} fields instead of {len(header)}")
                    continue
                count += 1
                commit = row[0].strip() if first else f"line {count}"
                if not commit:
                    rows.fault(ProblemKind.INCOMPLETE, f"line {number} has no commit")
                    continue
                _add(rows, row, header, jobs, commit, None if when is None else row[when], number)
        return rows.frame()


def _add(
    rows: Rows, row: list[str], header: list[str], jobs: list[int], commit: str, when: str | None, number: int
) -> None:
    for index in jobs:
        if header[index]:
            found = _word(row[index])
            fields: dict[str, Any]
            if found is None:
                fields = rows.status(row[index], _word, f"line {number}, {header[index]}")
            else:
                fields = {"status": found[0], "cause": found[1]}
            rows.add(header[index], commit, where=f"line {number}", submitted=when or None, **fields)


def _word(cell: str) -> tuple[str, str | None] | None:
    return _WORDS.get(cell.strip().lower()) if len(cell) < 64 else None


def _roles(header: list[str], rows: list[list[str]]) -> tuple[int, int | None]:
    """Return the index of the first column after the commit (0: there is no commit), and that of the time."""
    names = [name.strip().lower() for name in header]
    has_commit = bool(names) and (names[0] in _COMMITS or not _is_job(rows, 0))
    when = next((index for index, name in enumerate(names) if name in _TIMES and not _is_job(rows, index)), None)
    return (1 if has_commit and when != 0 else 0), when


def _is_job(rows: list[list[str]], index: int) -> bool:
    """Whether a column holds words for outcomes, as far as it was looked at."""
    cells = [row[index] for row in rows if index < len(row) and row[index].strip()]
    return bool(cells) and all(_word(cell) is not None for cell in cells)


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)


def _parsed(text: str, separator: str) -> Iterator[list[str]]:
    return (row for _, row in _numbered(text, separator))


def _numbered(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines with their numbers; where a quote is never closed, quotes are taken as any other character."""
    quoting = csv.QUOTE_MINIMAL if _closes(text, separator) else csv.QUOTE_NONE
    reader = csv.reader(_lines(text), delimiter=separator, quoting=quoting)  # type: ignore[arg-type]
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise FleetError(f"Line {reader.line_num} is no line of a table: {message_of(error)}.") from error


def _closes(text: str, separator: str) -> bool:
    """Whether all quotes are closed."""
    if '"' not in text:
        return True
    try:
        for _ in csv.reader(_lines(text), delimiter=separator, strict=True):
            pass
    except csv.Error:
        return False
    return True


def _lines(text: str) -> Iterator[str]:
    """Yield the lines with their ends, of which there are three kinds."""
    return iter(
        text.replace("\r\n", "\n").replace("\r", "\n").splitlines(keepends=True) if "\r" in text else _split(text)
    )


def _split(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end + 1
        yield text[at:end]
        at = end
