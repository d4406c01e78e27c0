from __future__ import annotations

import math

import pytest

from deep500.core.errors import MeasurementError
from deep500.training.validation.several_runs import run_statistics


def test_six_runs_have_an_exact_interval() -> None:
    found = run_statistics({"a": [5, 3, 4, 1, 2, 6]})["a"]

    assert found["values"] == [5.0, 3.0, 4.0, 1.0, 2.0, 6.0]
    assert (found["runs"], found["median"], found["minimum"], found["maximum"]) == (6, 3.5, 1.0, 6.0)
    assert found["interval"] == {"low": 1.0, "high": 6.0, "confidence": 0.95, "coverage": 1 - 2 * 0.5**6}
    assert not found["note"]


def test_fewer_runs_say_how_many_are_needed() -> None:
    found = run_statistics({"a": [1.0], "b": [1.0] * 5})

    assert found["a"]["interval"] is found["b"]["interval"] is None
    assert found["a"]["note"] == "1 run; an interval of the median at 95 % needs 6"
    assert found["b"]["note"].startswith("5 runs;")


def test_run_that_did_not_measure_is_not_left_out() -> None:
    found = run_statistics({"a": [1.0, math.nan, 2.0, 3.0, 4.0, 5.0, 6.0]})["a"]

    assert math.isnan(found["median"])
    assert found["interval"] is None
    assert found["note"] == "1 of 7 runs did not measure it"


def test_no_values_are_refused() -> None:
    with pytest.raises(MeasurementError, match="'a' has no values"):
        run_statistics({"a": []})
