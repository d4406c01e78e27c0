"""The tables that Deep500 writes itself: JSON lines and Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from deep500.core.errors import Deep500Error, FleetError
from deep500.core.strict_json import parse_json
from deep500.core.texts import message_of
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import FIELDS, OutcomeTable
from deep500.fleet.reader import Reader, bytes_of, text_of

__all__ = ["OutcomesReader"]


class OutcomesReader(Reader):
    """Tables of outcomes as :meth:`deep500.fleet.OutcomeTable.write` writes them."""

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether it is a Parquet file, or its first line is an object with a key, a group and a status."""
        if head.startswith(b"PAR1"):
            return True
        try:
            first = json.loads(head.lstrip().split(b"\n", 1)[0])
        except ValueError:
            return False
        return isinstance(first, dict) and {"key", "group", "status"} <= set(first)

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the table; lines that are none are counted."""
        data = bytes_of(path)
        if data.startswith(b"PAR1"):
            try:
                return pl.read_parquet(data)
            except pl.exceptions.PolarsError as error:
                raise FleetError(f"It is no Parquet file that can be read: {message_of(error)}") from error
        outcomes: list[Outcome] = []
        wrong: list[str] = []
        for number, line in enumerate(text_of(path, report).split("\n"), 1):
            if line.strip():
                try:
                    outcomes.append(_outcome(line))
                except (Deep500Error, ValueError, TypeError) as error:
                    wrong.append(f"line {number}: {message_of(error)}")
        report.add(ProblemKind.MALFORMED, str(path), len(wrong), wrong)
        return OutcomeTable.from_outcomes(outcomes).frame


def _outcome(line: str) -> Outcome:
    content: Any = parse_json(line)
    if not isinstance(content, dict):
        raise FleetError("It is no JSON object.")
    fields: dict[str, Any] = {name: content.get(name) for name in FIELDS}
    labels = {name: value for name, value in content.items() if name not in FIELDS and value is not None}
    for name, value in labels.items():
        if not isinstance(value, (str, int, float)):
            raise FleetError(f"The label {name!r} is neither a text nor a number.")
    return Outcome(**fields, labels=labels)
