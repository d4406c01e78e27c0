"""The verdict in words: what the numbers of a result say, without any console."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deep500.recipe.result import MetricResult, RecipeResult

__all__ = ["VerdictRow", "verdict_rows", "verdict_word"]

_COMPARISONS = {"higher": ">=", "lower": "<="}


@dataclass(frozen=True)
class VerdictRow:
    """One metric's line of the verdict.

    Attributes:
        name: The metric's name.
        value: What was measured, with its unit.
        acceptable: What was asked for, with its direction: ``">= 97 %"``.
        margin: By how much it is better, with its sign.
        verdict: ``"PASSED"``, ``"FAILED"``, or ``"reported"`` for a metric that decides nothing.
    """

    name: str
    value: str
    acceptable: str
    margin: str
    verdict: str


def verdict_word(passed: bool | None) -> str:
    """Return the word for a verdict."""
    return "reported" if passed is None else "PASSED" if passed else "FAILED"


def verdict_rows(result: RecipeResult) -> list[VerdictRow]:
    """Return one line for each metric."""
    return [_row(metric) for metric in result.metrics]


def _row(metric: MetricResult) -> VerdictRow:
    acceptable = margin = ""
    if metric.acceptable is not None:
        acceptable = f"{_COMPARISONS[metric.direction]} {_with_unit(metric.acceptable, metric.unit)}"
        margin = "" if metric.margin is None else _with_unit(metric.margin, metric.unit, sign="+")
    value = "not measured" if metric.value is None else _with_unit(metric.value, metric.unit)
    return VerdictRow(metric.name, value, acceptable, margin, verdict_word(metric.passed))


def _with_unit(value: float, unit: str, sign: str = "") -> str:
    number = f"{value:{sign}.6g}" if math.isfinite(value) else f"{value}"
    return f"{number} {unit}".rstrip()
