from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metric_test import measure_metrics
from deep500.measure.metrics.var_heatmap import VarHeatmap
from tests.unit.measure.metrics.arrays import COMPLEX, EXTENDED, FLOATS, INTEGERS, arrays

NAN, INF = math.nan, math.inf


def after(*outputs: Any) -> VarHeatmap:
    metric = VarHeatmap(reruns=max(2, len(outputs)))
    for output in outputs:
        metric.end(output)
    return metric


def exact_variance(numbers: list[Any]) -> float:
    fractions = [Fraction(number) for number in numbers]
    mean = sum(fractions, Fraction(0)) / len(fractions)
    return float(sum(((number - mean) ** 2 for number in fractions), Fraction(0)) / (len(fractions) - 1))


@given(hnp.arrays(np.float64, st.integers(2, 20), elements=st.floats(-1e6, 1e6)))
def test_variance_of_real_numbers(runs: np.ndarray[Any, Any]) -> None:
    expected = exact_variance(runs.tolist())

    assert after(*runs).measure() == pytest.approx(expected, rel=1e-9, abs=1e-18)


@given(hnp.arrays(np.int64, st.integers(2, 20)))
def test_variance_of_whole_numbers(runs: np.ndarray[Any, Any]) -> None:
    assert after(*runs).measure() == pytest.approx(exact_variance(runs.tolist()), rel=1e-9)


@given(hnp.arrays(np.complex128, st.integers(2, 9), elements=st.complex_numbers(max_magnitude=1e6)))
def test_variance_of_complex_numbers_is_that_of_both_parts(runs: np.ndarray[Any, Any]) -> None:
    expected = exact_variance(runs.real.tolist()) + exact_variance(runs.imag.tolist())

    assert after(*runs).measure() == pytest.approx(expected, rel=1e-9, abs=1e-18)


@given(arrays([*INTEGERS, *FLOATS, *COMPLEX, *EXTENDED]), st.integers(2, 5))
def test_equal_runs_have_no_variance_at_all(output: np.ndarray[Any, Any], runs: int) -> None:
    assert after(*[{"y": output.copy()} for _ in range(runs)]).measure() == 0.0


def test_smallest_differences_show() -> None:
    assert after(np.array([2**62]), np.array([2**62 + 1])).measure() == 0.5
    assert after(np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64)).measure() == 0.5
    one = np.float32(1)
    assert after(one, np.nextafter(one, np.float32(2))).measure() == pytest.approx(2.0**-46 / 2)
    assert after(np.ones(1, ml_dtypes.bfloat16), np.array([1.0078125], ml_dtypes.bfloat16)).measure() == 2.0**-15


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([NAN, NAN], 0.0),
        ([NAN, 1.0], NAN),
        ([1.0, NAN], NAN),
        ([INF, INF], 0.0),
        ([INF, 1.0], INF),
        ([INF, -INF, NAN], NAN),
        ([1e308, -1e308, 0.0], INF),
        ([True, False], 0.5),
    ],
)
def test_special_values(runs: list[Any], expected: float) -> None:
    assert after(*runs).measure() == pytest.approx(expected, nan_ok=True)


def test_outputs_that_are_written_over_are_told_apart() -> None:
    buffer = np.zeros(3)

    def test() -> np.ndarray[Any, Any]:
        buffer[1] += 1
        return buffer

    [found] = measure_metrics([VarHeatmap(reruns=3)], test)

    assert found.value == 1.0  # of 1, 2, 3
    assert found.summary == "1, over 3 runs"


def test_picture_shows_the_variances(tmp_path: Path) -> None:
    path = tmp_path / "variance.svg"
    stream = np.random.default_rng(1)
    [found] = measure_metrics(
        [VarHeatmap(path, reruns=4)], lambda: {"still": np.ones(4), "noisy": stream.normal(size=(2, 3, 4))}
    )

    assert found.value > 0
    assert found.summary.endswith(f"(picture: {path}), over 4 runs")
    assert "variance over runs" in path.read_text()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1.0], [1.0, 2.0]),
        ({"a": 1.0}, {"b": 1.0}),
        (np.zeros((2, 2)), np.zeros(4)),
        ([], [1.0]),
    ],
)
def test_runs_of_other_outputs_are_refused(first: Any, second: Any) -> None:
    metric = after(first)

    with pytest.raises(MeasurementError, match=r"run 2 returned .* and the first run"):
        metric.end(second)


def test_what_it_is_and_wrong_use() -> None:
    metric = VarHeatmap()

    assert (metric.unit, metric.direction, metric.kind) == ("", Direction.LOWER, MetricKind.SCORE)
    assert (metric.reruns, metric.requires_inputs, metric.requires_outputs) == (10, False, True)
    assert after([], []).measure() == 0.0
    for count in (0, 1):
        with pytest.raises(InvalidInputError, match=f"needs two runs; VarHeatmap has seen {count}"):
            after(*[1.0] * count).measure()
    with pytest.raises(InvalidInputError, match="reruns was given as 1; accepted are whole numbers from 2"):
        VarHeatmap(reruns=1)
    with pytest.raises(InvalidInputError, match="no numbers"):
        VarHeatmap().end(["text"])
    with pytest.raises(InvalidInputError, match="accepted are names"):
        VarHeatmap("picture.txt")
