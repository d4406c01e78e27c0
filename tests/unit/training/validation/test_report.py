from __future__ import annotations

import math

import pytest

from deep500.core.errors import TrainingError
from deep500.training.validation.report import CheckReport, OptimizerReport, ParameterCheck, settled


def test_error_says_the_first_things_that_are_wrong() -> None:
    report = CheckReport("x", failures=("One.", "Two.", "Three.", "Four."))

    assert not report.passed
    assert settled(report, raise_on_failure=False) is report
    with pytest.raises(TrainingError, match=r"One\. Two\. Three\. And 1 more\."):
        settled(report, raise_on_failure=True)


def test_report_gives_what_the_metrics_measured() -> None:
    [one, two] = CheckReport("x", measured=(1.5, [2, 3]))

    assert (one, two) == (1.5, [2, 3])


def test_nan_never_agrees() -> None:
    assert not ParameterCheck("w", 1, math.nan, math.nan, 1.0, 1.0).agrees


def test_table_shows_the_worst_first() -> None:
    checks = (ParameterCheck("a", 1, 0.1, 0.1, 1.0, 0.2), ParameterCheck("b", 2, 0.5, 0.3, 1.0, 0.2))
    text = str(OptimizerReport("Adam", ("b is wrong.",), losses=(1.0, 0.5), parameters=checks, reference="SGD"))

    assert text.index("\n  b ") < text.index("\n  a ")
    assert "Adam, 2 steps, against SGD: FAILED" in text
    assert "wrong: b is wrong." in text
