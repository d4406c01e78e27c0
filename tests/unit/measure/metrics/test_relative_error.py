from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics.relative_error import RelativeError
from deep500.measure.tolerance import tolerance

NAN, INF = math.nan, math.inf
finite = st.floats(-1e100, 1e100)


@given(
    hnp.arrays(np.float64, (2, 5), elements=finite), hnp.arrays(np.float32, (2, 3), elements=st.floats(-9, 9, width=32))
)
def test_largest_ratio_of_norms_of_an_output(first: Any, second: Any) -> None:
    def ratio(pair: Any) -> float:
        error = math.hypot(*(float(a) - float(b) for a, b in zip(*pair)))
        size = math.hypot(*map(float, pair[1]))
        return error / size if size else (math.inf if error else 0.0)

    found = RelativeError().measure(None, [first[0], second[0]], [first[1], second[1]])

    assert found == pytest.approx(max(ratio(first), ratio(second)), rel=1e-12)


@pytest.mark.parametrize(
    ("outputs", "reference", "expected"),
    [
        ([], [], 0.0),
        ([np.zeros(0)], [np.zeros(0)], 0.0),
        ([0.0], [0.0], 0.0),
        ([1e-300], [0.0], INF),
        ([3.0], [NAN], NAN),
        ([[NAN, 2.0]], [[NAN, 1.0]], 1.0),
        ([[INF, 2.0]], [[INF, 1.0]], 1.0),  # the infinity does not hide the other element
        ([[INF]], [[INF]], 0.0),
        ([[INF]], [[1.0]], INF),
        ([1 + 1j], [1.0 + 0j], 1.0),
        ([2e300], [1e300], 1.0),
    ],
)
def test_special_values(outputs: Any, reference: Any, expected: float) -> None:
    assert RelativeError().measure(None, outputs, reference) == pytest.approx(expected, nan_ok=True)


def test_passes_at_the_tolerance_of_the_dtype_and_fails_beyond() -> None:
    allowed = tolerance("float32", 100).relative
    reference = np.array([1.0])
    metric = RelativeError(100, dtype="float32")

    assert metric.acceptable([reference], [reference]) == allowed
    assert metric.passes([reference * (1 + 0.999 * allowed)], [reference])
    assert not metric.passes([reference * (1 + 1.001 * allowed)], [reference])
    assert not metric.passes([np.array([NAN])], [reference])
    assert metric.accepts(metric.measure(None, [reference], [reference]), metric.acceptable([reference], [reference]))


def test_each_output_is_held_against_its_own_dtype() -> None:
    half, single = np.ones(2, np.float16), np.ones(2, np.float32)
    wrong_half, wrong_single = half * np.float16(1 + 2**-10), single * np.float32(1 + 2**-10)
    metric = RelativeError()

    assert not metric.passes({"h": wrong_half, "s": single}, {"h": half, "s": single})
    assert RelativeError(accumulator="float16").passes({"h": half, "s": single}, {"h": half, "s": single})
    assert not metric.passes({"h": half, "s": wrong_single}, {"h": half, "s": single})
    assert metric.acceptable([half, single], [half, single]) == tolerance("float32").relative
    assert metric.passes([single.astype(ml_dtypes.bfloat16)], [single * np.float32(1 + 2**-10)])


def test_coarser_dtype_of_output_and_reference_counts() -> None:
    exact = np.array([1 / 3, 2 / 3])
    single = exact.astype(np.float32)

    assert RelativeError().passes([single], [exact])
    assert RelativeError().passes([exact], [single])
    assert not RelativeError(dtype="float64").passes([single], [exact])
    assert not RelativeError().passes([np.array([3])], [np.array([4])])
    assert RelativeError().passes([np.array([4])], [np.array([4])])


def test_summary_says_what_is_acceptable_and_which_output_is_not() -> None:
    one = np.ones(1, np.float32)
    metric = RelativeError(1000)

    assert metric.measure_summary(None, [one], [one]) == "0 (acceptable up to 7.54e-06 in float32, reductions of 1000)"
    assert RelativeError().measure_summary(None, {"a": one, "b": 2 * one}, {"a": one, "b": one}) == (
        "1 (not acceptable: output 'b', up to 5.96e-08 in float32)"
    )
    assert metric.measure_summary(None, [], []) == "0 (no outputs)"


def test_what_it_is_and_what_it_needs() -> None:
    metric = RelativeError()

    assert (metric.unit, metric.direction, metric.kind) == ("", Direction.LOWER, MetricKind.SCORE)
    with pytest.raises(MeasurementError, match="RelativeError needs reference outputs"):
        metric.measure(None, [1.0])
    with pytest.raises(InvalidInputError, match="reduction length"):
        RelativeError(0)
    with pytest.raises(InvalidInputError, match="dtype"):
        RelativeError(dtype="float31")
    with pytest.raises(MeasurementError, match="no meaningful tolerance"):
        RelativeError(10**6, dtype="float16", accumulator="float16")
