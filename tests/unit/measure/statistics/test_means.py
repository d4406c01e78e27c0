from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import MeasurementError
from deep500.measure.metric import MetricKind
from deep500.measure.statistics.means import mean_of


def test_costs_are_averaged_arithmetically_and_rates_harmonically() -> None:
    # SC15, section 3.1.1: 100 Gflop in 10, 100 and 40 s; the rate over all three is 2 Gflop/s.
    seconds = [10.0, 100.0, 40.0]

    assert mean_of(seconds, MetricKind.COST) == 50
    assert mean_of([100 / time for time in seconds], MetricKind.RATE) == pytest.approx(2)
    assert mean_of([0.0, -1.0, 4.0], MetricKind.SCORE) == 1


@given(values=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20))
def test_mean_rate_is_the_work_over_the_mean_time(values: list[float]) -> None:
    rates = [8 / value for value in values]

    assert mean_of(rates, MetricKind.RATE) == pytest.approx(8 / mean_of(values, MetricKind.COST))
    assert min(rates) * (1 - 1e-12) <= mean_of(rates, MetricKind.RATE) <= max(rates) * (1 + 1e-12)


def test_mean_of_ratios_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(MeasurementError, match=r"Ratios are not averaged .*rule 4.*Average the costs"):
        mean_of([1.5, 2.0], MetricKind.RATIO)


@pytest.mark.parametrize("kind", [MetricKind.COST, MetricKind.RATE, MetricKind.SCORE])
@pytest.mark.parametrize(
    ("values", "message"),
    [([], "There are 0 values"), ([1.0, math.nan], "1 of 2 values"), ([math.inf], "1 of 1 values"), ([[1.0]], "shape")],
)
def test_values_without_a_mean_are_refused(kind: MetricKind, values: list[float], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        mean_of(values, kind)


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_rates_that_are_not_positive_are_refused(rate: float) -> None:
    with pytest.raises(MeasurementError, match="Rates are positive"):
        mean_of([1.0, rate], MetricKind.RATE)
