"""Outcomes that are gathered one by one, and the faults that are met on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.outcome_table import FIELDS
from deep500.fleet.readers._values import UNKNOWN_WORDS, number_of, plain_text, seconds_of

__all__ = ["Rows"]

_TIMES = ("submitted", "started", "ended")
_NUMBERS = ("gpus", "cost")
_DTYPES: dict[type, Any] = {bool: pl.Boolean, int: pl.Float64, float: pl.Float64, str: pl.String}


class Rows:
    """Outcomes of one source, gathered one by one.

    Fields may be what a format has for them: times as texts or numbers, numbers as texts. What is none becomes unknown
    and is counted.
    """

    def __init__(self, path: Path, report: InputReport, **labels: type) -> None:
        """Begin with nothing.

        Args:
            path: The source.
            report: Where faults are counted, when the frame is made.
            **labels: The labels that every table of this format has, each with ``str``, ``float`` or ``bool``.
        """
        self._path = str(path)
        self._report = report
        self._labels = dict(labels)
        self._rows: list[dict[str, Any]] = []
        self._faults: dict[tuple[ProblemKind, str], tuple[int, list[str]]] = {}

    def add(self, key: object, group: object, status: str, where: str = "", **values: Any) -> None:
        """Add an outcome; without a key or a group it is counted as incomplete.

        Args:
            key: Its key.
            group: Its group.
            status: Its status.
            where: Where it stands in the source, for messages.
            **values: Further fields and labels; ``None`` is unknown.
        """
        row: dict[str, Any] = {"key": _name(key), "group": _name(group), "status": status}
        for name in ("key", "group"):
            if row[name] is None:
                self.fault(ProblemKind.INCOMPLETE, f"{where or 'an outcome'} has no {name}")
                return
        for name, value in values.items():
            if value is None:
                continue
            row[name] = self._value(name, value, where or row["key"])
        self._rows.append(row)

    def fault(self, kind: ProblemKind, example: object = "", effect: str = "") -> None:
        """Count a fault; ``effect`` is what was done about it, where that is not what the kind says."""
        count, examples = self._faults.setdefault((kind, effect), (0, []))
        if example and len(examples) < 3:
            examples.append(plain_text(example))
        self._faults[kind, effect] = (count + 1, examples)

    def status(self, word: object, known: Callable[[str], tuple[str, str | None] | None], where: str) -> dict[str, Any]:
        """Return the fields ``status`` and ``cause`` for a word of the format; one that it does not define is counted.

        Args:
            word: The word.
            known: Returns status and cause of a word, ``None`` for one that is not defined.
            where: Where it stands, for messages.
        """
        found = known(word) if isinstance(word, str) else None
        if found is None:
            self.fault(ProblemKind.UNKNOWN_STATUS, f"{where}: {plain_text(word)[:40]}")
            found = ("missing", f"unknown status: {plain_text(word)[:40]}")
        return {"status": found[0], "cause": found[1]}

    def __len__(self) -> int:
        """The number of outcomes so far."""
        return len(self._rows)

    def frame(self) -> pl.DataFrame:
        """Return the outcomes, and tell the report what was wrong."""
        for (kind, effect), (count, examples) in self._faults.items():
            self._report.add(kind, self._path, count, examples, effect)
        schema = {**FIELDS, **{name: _DTYPES[kind] for name, kind in self._labels.items()}}
        columns = {name: [row.get(name) for row in self._rows] for name in schema}
        return pl.DataFrame(columns, schema=schema)

    def _value(self, name: str, value: Any, where: str) -> Any:
        if name == "cause":
            return plain_text(value)[:500] or None
        if name in _TIMES or name in _NUMBERS:
            found = seconds_of(value) if name in _TIMES else number_of(value)
        else:
            kind = self._labels.setdefault(name, str if isinstance(value, str) else type(value))
            if kind is str:
                return plain_text(value) or None
            found = value if kind is bool and isinstance(value, bool) else number_of(value)
        if found is None and not (isinstance(value, str) and value.strip() in UNKNOWN_WORDS):
            self.fault(ProblemKind.MALFORMED, f"{where}: {name} is {plain_text(value)[:40]!r}")
        return found


def _name(value: object) -> str | None:
    if value is None or isinstance(value, (bool, dict, list)):
        return None
    return plain_text(value) or None
