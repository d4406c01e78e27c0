from __future__ import annotations

import math

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.launches import in_process_interval, nested_interval, spread
from deep500.measure.statistics.quantiles import quantile_interval, quantile_intervals

LAUNCHES = [[10.0 + launch, 11.0 + launch, 15.0 + launch] for launch in range(7)]


def test_interval_is_that_of_the_launch_medians() -> None:
    result = nested_interval(LAUNCHES)

    assert result.launch_values == tuple(11.0 + launch for launch in range(7))
    assert result.interval == quantile_interval(result.launch_values)
    assert result.spread == spread(LAUNCHES)


def test_pooled_samples_are_covered_far_less_often_than_launches() -> None:
    rng = np.random.default_rng(0)
    runs = rng.lognormal(0, 0.05, (2000, 10, 100)) * rng.lognormal(0, 0.02, (2000, 10, 1))
    pooled, nested = quantile_intervals(runs.reshape(2000, 1000)), quantile_intervals(np.median(runs, axis=-1))

    assert np.mean((pooled.low <= 1) & (pooled.high >= 1)) < 0.6
    assert 0.96 <= np.mean((nested.low <= 1) & (nested.high >= 1)) <= 0.99
    assert nested_interval(list(runs[0])).interval.low == nested.low[0]


def test_variance_is_divided_as_in_an_analysis_by_hand() -> None:
    # Launch means 12, 13, ...: mean square between 3 * var(0..6) = 14; within ((-2)^2 + (-1)^2 + 3^2) / 2 = 7.
    result = spread(LAUNCHES)

    assert result.within**2 == pytest.approx(7)
    assert result.between**2 == pytest.approx((14 - 7) / 3)
    assert result.between_share == pytest.approx((7 / 3) / (7 + 7 / 3))


def test_spread_finds_what_was_put_in_also_when_launches_differ_in_length() -> None:
    rng = np.random.default_rng(1)
    launches = [rng.normal(5 + 2 * rng.normal(), 1.0, size) for size in rng.integers(5, 50, 400)]
    result = spread(launches)

    assert result.within == pytest.approx(1, rel=0.03)
    assert result.between == pytest.approx(2, rel=0.1)


def test_launches_that_do_not_differ_share_nothing() -> None:
    assert spread([[1.0, 2.0], [1.0, 2.0]]).between == 0
    assert spread([[1.0, 1.0], [1.0, 1.0]]).between_share == 0
    assert nested_interval([[1.0]] * 6).spread is None


def test_other_quantiles_need_enough_samples_in_each_launch() -> None:
    launches = [np.arange(36.0) + launch for launch in range(6)]

    assert nested_interval(launches, quantile=0.9).launch_values[0] == pytest.approx(31.5)
    with pytest.raises(MeasurementError, match=r"There are 36 samples of launch 1, for its 0\.95 quantile.*least 72"):
        nested_interval(launches, quantile=0.95)


def test_few_launches_are_refused() -> None:
    with pytest.raises(MeasurementError, match=r"at least 6 process launches; there are 5.*in_process_interval"):
        nested_interval(LAUNCHES[:5])
    with pytest.raises(MeasurementError, match="at least 8 process launches; there are 7"):
        nested_interval(LAUNCHES, confidence=0.99)


def test_launches_are_not_pooled() -> None:
    with pytest.raises(MeasurementError, match="Samples of 7 launches are not pooled"):
        in_process_interval(LAUNCHES)
    assert in_process_interval([range(9)]) == quantile_interval(range(9))


@pytest.mark.parametrize("bad", [[], [math.nan], [math.inf, 1.0]])
def test_launches_without_usable_samples_are_refused(bad: list[float]) -> None:
    for call in (nested_interval, spread):
        with pytest.raises(MeasurementError, match="samples of launch 8"):
            call([*LAUNCHES, bad])


@pytest.mark.parametrize("launches", [[], [[1.0, 2.0]], [[1.0], [2.0]]])
def test_spread_needs_launches_and_samples(launches: list[list[float]]) -> None:
    with pytest.raises(MeasurementError, match="needs two launches"):
        spread(launches)
