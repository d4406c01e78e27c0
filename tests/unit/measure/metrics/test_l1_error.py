from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics.l1_error import L1Error
from tests.unit.measure.metrics.arrays import EXTENDED, FLOATS, INTEGERS, distance, pairs

NAN, INF = math.nan, math.inf


@given(pairs([*INTEGERS, *FLOATS, *EXTENDED]), pairs([*INTEGERS, *FLOATS]))
def test_sum_over_all_outputs_of_any_dtype(first: Any, second: Any) -> None:
    all_pairs = [*zip(first[0].ravel(), first[1].ravel()), *zip(second[0].ravel(), second[1].ravel())]
    expected = float(np.sum([distance(a, b) for a, b in all_pairs], dtype=np.longdouble)) if all_pairs else 0.0

    by_place = L1Error().measure(None, [first[0], second[0]], [first[1], second[1]])
    by_name = L1Error().measure(None, {"a": first[0], "b": second[0]}, {"b": second[1], "a": first[1]})

    np.testing.assert_allclose([by_place, by_name], expected, rtol=1e-14, atol=5e-324 * max(1, len(all_pairs)))


@pytest.mark.parametrize(
    ("outputs", "reference", "expected"),
    [
        ([], [], 0.0),
        (np.zeros((0, 3)), np.zeros((0, 3)), 0.0),
        ([1.0, NAN, INF, -INF], [1.5, NAN, INF, -INF], 0.5),
        ([NAN], [0.0], NAN),
        ([0.0], [NAN], NAN),
        ([INF], [-INF], INF),
        ([INF, NAN], [0.0, 0.0], NAN),
        ([3 + 4j], [0.0], 5.0),
        ([True, False], [False, False], 1.0),
        ([np.float16(60000)], [np.float16(-60000)], 120000.0),
        ([1e308, 1e308], [0.0, 0.0], INF),
    ],
)
def test_special_values(outputs: Any, reference: Any, expected: float) -> None:
    assert L1Error().measure(None, outputs, reference) == pytest.approx(expected, nan_ok=True)


def test_what_it_is_and_what_it_needs() -> None:
    metric = L1Error()

    assert (metric.name, metric.unit, metric.direction, metric.kind) == (
        "L1Error",
        "",
        Direction.LOWER,
        MetricKind.SCORE,
    )
    assert (metric.reruns, metric.requires_inputs, metric.requires_outputs) == (0, False, True)
    assert metric.measure_summary(None, [1.0], [1.25]) == "0.25"
    with pytest.raises(MeasurementError, match="L1Error needs reference outputs"):
        metric.measure(None, [1.0])
    with pytest.raises(InvalidInputError, match="L1Error compares outputs of equal shapes"):
        metric.measure(None, [np.zeros(2)], [np.zeros(1)])
