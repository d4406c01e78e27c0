from __future__ import annotations

import pytest

from deep500.recipe.result import MetricResult
from deep500.recipe.verdict import VerdictRow, verdict_rows, verdict_word
from tests.unit.recipe.support import result


@pytest.mark.parametrize(
    ("metric", "row"),
    [
        (
            MetricResult("TestAccuracy", 98.25, "%", "higher", 97.0, 1.25, True),
            VerdictRow("TestAccuracy", "98.25 %", ">= 97 %", "+1.25 %", "PASSED"),
        ),
        (
            MetricResult("WallclockTime", 12.5, "s", "lower", 10.0, -2.5, False),
            VerdictRow("WallclockTime", "12.5 s", "<= 10 s", "-2.5 s", "FAILED"),
        ),
        (
            MetricResult("Loss", float("nan"), "", "lower", 1.0, float("nan"), False),
            VerdictRow("Loss", "nan", "<= 1", "nan", "FAILED"),
        ),
        (MetricResult("Loss", 0.5, "", "lower", None, None, None), VerdictRow("Loss", "0.5", "", "", "reported")),
        (
            MetricResult("Loss", None, "", "lower", 1.0, None, False),
            VerdictRow("Loss", "not measured", "<= 1", "", "FAILED"),
        ),
    ],
)
def test_row(metric: MetricResult, row: VerdictRow) -> None:
    assert verdict_rows(result(metrics=[metric])) == [row]


def test_words() -> None:
    assert [verdict_word(passed) for passed in (True, False, None)] == ["PASSED", "FAILED", "reported"]
