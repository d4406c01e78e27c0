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
from deep500.fleet.reader import Reader, bytes_of, head_text, text_of
from deep500.fleet.readers._values import plain_text

__all__ = ["OutcomesReader"]

#: Larger numbers do not fit into a column of integers.
_LARGEST_INTEGER = 2**62


class OutcomesReader(Reader):
    """Tables of outcomes as :meth:`deep500.fleet.OutcomeTable.write` writes them."""

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether it is a Parquet file, or its first line is an object with a key, a group and a status."""
        if head.startswith(b"PAR1"):
            return True
        try:
            first = json.loads(head_text(head).lstrip().split("\n", 1)[0])
        except (ValueError, RecursionError):
            return False
        return isinstance(first, dict) and {"key", "group", "status"} <= set(first)

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the table; lines that are none are counted."""
        data = bytes_of(path)
        if data.startswith(b"PAR1"):
            try:
                return pl.read_parquet(data)
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                raise FleetError(f"It is no Parquet file that can be read: {message_of(error)}") from error
        outcomes: list[Outcome] = []
        wrong: list[str] = []
        count = 0
        for number, line in enumerate(text_of(path, report).split("\n"), 1):
            if line.strip():
                try:
                    outcomes.append(_outcome(line))
                except (Deep500Error, ValueError, TypeError) as error:
                    count += 1
                    if len(wrong) < 3:
                        wrong.append(f"line {number}: {message_of(error)}")
        report.add(ProblemKind.MALFORMED, str(path), count, wrong)
        return OutcomeTable.from_outcomes(_of_one_kind(outcomes, path, report)).frame


def _outcome(line: str) -> Outcome:
    content: Any = parse_json(line)
    if not isinstance(content, dict):
        raise FleetError("It is no JSON object.")
    fields: dict[str, Any] = {name: content.get(name) for name in FIELDS}
    for name in ("key", "group", "cause"):
        if isinstance(fields[name], str):
            fields[name] = plain_text(fields[name])
        elif fields[name] is not None:
            raise FleetError(f"{name!r} is no text.")
    labels = {plain_text(name): value for name, value in content.items() if name not in FIELDS and value is not None}
    for name, value in labels.items():
        if not isinstance(value, (str, int, float)):
            raise FleetError(f"The label {name!r} is neither a text nor a number.")
        if isinstance(value, str):
            labels[name] = plain_text(value)
        elif abs(value) > _LARGEST_INTEGER:
            labels[name] = float(value)
    return Outcome(**fields, labels=labels)


def _of_one_kind(outcomes: list[Outcome], path: Path, report: InputReport) -> list[Outcome]:
    """Return the outcomes with texts where a label has values of several kinds, and count these labels."""
    kinds: dict[str, set[type]] = {}
    for outcome in outcomes:
        for name, value in outcome.labels.items():
            kinds.setdefault(name, set()).add(float if type(value) is int else type(value))
    mixed = sorted(name for name, found in kinds.items() if len(found) > 1)
    if not mixed:
        return outcomes
    names = [f"the label {name!r}" for name in mixed]
    report.add(ProblemKind.MALFORMED, str(path), len(mixed), names, "labels with values of several kinds became texts")
    return [
        Outcome(
            **{name: getattr(outcome, name) for name in FIELDS},
            labels={name: str(value) if name in mixed else value for name, value in outcome.labels.items()},
        )
        for outcome in outcomes
    ]
