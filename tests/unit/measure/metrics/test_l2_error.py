from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics.l2_error import L2Error
from tests.unit.measure.metrics.arrays import EXTENDED, FLOATS, INTEGERS, distance, pairs

NAN, INF = math.nan, math.inf


@given(pairs([*INTEGERS, *FLOATS, *EXTENDED]), pairs([*INTEGERS, *FLOATS]))
def test_norm_over_all_outputs_of_any_dtype(first: Any, second: Any) -> None:
    all_pairs = [*zip(first[0].ravel(), first[1].ravel()), *zip(second[0].ravel(), second[1].ravel())]
    # hypot scales by itself and is right within a rounding.
    distances = [distance(a, b) for a, b in all_pairs]
    expected = math.nan if any(map(math.isnan, distances)) else math.hypot(*distances)

    by_place = L2Error().measure(None, [first[0], second[0]], [first[1], second[1]])
    by_name = L2Error().measure(None, {"a": first[0], "b": second[0]}, {"b": second[1], "a": first[1]})

    np.testing.assert_allclose([by_place, by_name], expected, rtol=1e-14, atol=5e-323)


@given(pairs(["float32"]))
def test_norm_is_numpys_of_the_difference(pair: Any) -> None:
    left, right = (np.nan_to_num(array, posinf=1.0, neginf=-1.0) for array in pair)
    expected = np.linalg.norm((left.astype(np.longdouble) - right.astype(np.longdouble)).ravel())

    assert L2Error().measure(None, left, right) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize(
    ("outputs", "reference", "expected"),
    [
        ([], [], 0.0),
        ([[], [3.0]], [[], [-1.0]], 4.0),
        ([3.0, NAN, INF], [0.0, NAN, INF], 3.0),
        ([NAN], [0.0], NAN),
        ([INF, 1.0], [1.0, 1.0], INF),
        ([[INF], [NAN]], [[0.0], [0.0]], NAN),
        ([3e200, 0.0], [0.0, 4e200], 5e200),
        ([3e-200, 0.0], [0.0, 4e-200], 5e-200),
        ([3j, 4.0], [0.0, 0.0], 5.0),
        (np.array([2**63 - 1]), np.array([2**63 - 4]), 3.0),
    ],
)
def test_special_values(outputs: Any, reference: Any, expected: float) -> None:
    assert L2Error().measure(None, outputs, reference) == pytest.approx(expected, nan_ok=True)


def test_what_it_is_and_what_it_needs() -> None:
    metric = L2Error()

    assert (metric.name, metric.unit, metric.direction, metric.kind) == (
        "L2Error",
        "",
        Direction.LOWER,
        MetricKind.SCORE,
    )
    assert (metric.reruns, metric.requires_inputs, metric.requires_outputs) == (0, False, True)
    assert metric.measure_summary(None, [3.0, 0.0], [0.0, 4.0]) == "5"
    with pytest.raises(MeasurementError, match="L2Error needs reference outputs"):
        metric.measure(None, [1.0])
    with pytest.raises(InvalidInputError, match="L2Error compares the same outputs"):
        metric.measure(None, {"y": 1.0}, {"z": 1.0})
