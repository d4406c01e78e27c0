from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics.max_error import MaxError
from tests.unit.measure.metrics.arrays import EXTENDED, INTEGERS, distance, pairs

NAN, INF = math.nan, math.inf


@given(pairs([*INTEGERS, "float16", "float32", "float64", *EXTENDED]), pairs(INTEGERS))
def test_largest_over_all_outputs_of_any_dtype(first: Any, second: Any) -> None:
    all_pairs = [*zip(first[0].ravel(), first[1].ravel()), *zip(second[0].ravel(), second[1].ravel())]
    distances = [distance(a, b) for a, b in all_pairs]
    expected = math.nan if any(map(math.isnan, distances)) else max(distances, default=0.0)

    by_place = MaxError().measure(None, [first[0], second[0]], [first[1], second[1]])
    by_name = MaxError().measure(None, {"a": first[0], "b": second[0]}, {"b": second[1], "a": first[1]})

    np.testing.assert_allclose([by_place, by_name], expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("outputs", "reference", "expected"),
    [
        ([], [], 0.0),
        ([np.zeros((0, 2)), 1.0], [np.zeros((0, 2)), 3.0], 2.0),
        ([1.0, NAN, INF], [1.0, NAN, INF], 0.0),
        ([5.0, NAN], [0.0, 0.0], NAN),
        ([INF], [1.0], INF),
        ([1 + 1j], [1 + 3j], 2.0),
        (np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64), 1.0),
        (np.array([0], np.uint8), np.array([255], np.uint8), 255.0),
    ],
)
def test_special_values(outputs: Any, reference: Any, expected: float) -> None:
    assert MaxError().measure(None, outputs, reference) == pytest.approx(expected, nan_ok=True)


def test_what_it_is_and_what_it_needs() -> None:
    metric = MaxError()

    assert (metric.name, metric.unit, metric.direction) == ("MaxError", "", Direction.LOWER)
    assert (metric.kind, metric.reruns, metric.requires_inputs) == (MetricKind.SCORE, 0, False)
    with pytest.raises(MeasurementError, match="MaxError needs reference outputs"):
        metric.measure(None, [1.0])
    with pytest.raises(InvalidInputError, match="MaxError"):
        metric.measure(None, [1.0, 2.0], [1.0])
