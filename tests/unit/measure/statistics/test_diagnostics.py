from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.diagnostics import (
    autocorrelation,
    effective_sample_size,
    independence,
    mean_interval,
    normality,
)
from tests.unit.measure.statistics.simulation import autoregressive


def test_normality_is_that_of_scipy_and_rejects_at_its_level() -> None:
    rng = np.random.default_rng(0)
    normal, skewed = rng.normal(size=(500, 50)), rng.lognormal(0, 0.5, (500, 50))

    expected = stats.shapiro(normal[0])
    result = normality(normal[0])
    assert (result.statistic, result.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-6)
    assert 0.02 <= np.mean([normality(row).rejected for row in normal]) <= 0.08
    assert np.mean([normality(row).rejected for row in skewed]) >= 0.8


def test_offset_and_unit_do_not_matter_to_normality() -> None:
    samples = np.random.default_rng(1).normal(size=60)

    assert normality(1e6 + samples * 1e-3).p_value == pytest.approx(normality(samples).p_value, rel=1e-3)


def test_many_samples_are_tested_by_their_moments() -> None:
    rng = np.random.default_rng(2)

    assert normality(rng.normal(size=5001)).test == "D'Agostino-Pearson"
    assert not normality(rng.normal(size=5001)).rejected
    assert normality(rng.lognormal(0, 0.1, 5001)).rejected


def test_mean_interval_is_that_of_student() -> None:
    samples = stats.norm(5, 2).ppf((np.arange(30) + 0.5) / 30)
    expected = stats.ttest_1samp(samples, 0).confidence_interval(0.9)
    interval = mean_interval(samples, 0.9)

    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert interval.estimate == pytest.approx(samples.mean())
    assert not interval.exact


def test_mean_of_samples_that_are_not_normal_is_refused_unless_forced() -> None:
    samples = np.random.default_rng(4).lognormal(size=100)

    with pytest.raises(MeasurementError, match=r"100 samples are not normal \(Shapiro-Wilk.*rule 6.*quantile_interval"):
        mean_interval(samples)
    assert mean_interval(samples, force=True).contains(samples.mean())


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "There are 0 samples"),
        (range(19), "There are 19 samples; at least 20"),
        ([3.0] * 20, r"All 20 samples are 3.*rule 5"),
        ([math.nan] * 20, "20 of 20 samples are NaN"),
    ],
)
def test_samples_without_a_mean_interval_are_refused(samples: list[float], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        mean_interval(samples)
    with pytest.raises(MeasurementError):
        mean_interval([1.0], force=True)


@given(samples=st.lists(st.integers(-1000, 1000), min_size=3, max_size=50).filter(lambda row: len(set(row)) > 1))
def test_autocorrelation_is_that_of_its_formula(samples: list[int]) -> None:
    row = np.array(samples) - np.mean(samples)
    expected = np.correlate(row, row, "full")[len(row) - 1 :] / (row @ row)

    assert autocorrelation(samples) == pytest.approx(expected, abs=1e-9)
    assert 0 < effective_sample_size(samples) <= len(samples)


def test_equal_samples_are_not_correlated() -> None:
    assert autocorrelation([0.1] * 5).tolist() == [1, 0, 0, 0, 0]
    assert effective_sample_size([0.1] * 5) == 5


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_samples_are_those_of_an_autoregression(rho: float) -> None:
    rows = autoregressive(np.random.default_rng(5), 20, 4000, rho)
    sizes = [effective_sample_size(row) for row in rows]

    assert np.median(sizes) == pytest.approx(4000 * (1 - rho) / (1 + rho), rel=0.15)


def test_alternating_samples_are_not_worth_more_than_their_number() -> None:
    assert effective_sample_size([1.0, 2.0] * 20) == 40


def test_correlated_samples_are_warned_of() -> None:
    rng = np.random.default_rng(6)
    result = independence(autoregressive(rng, 1, 100, 0.7)[0])

    assert result.lag_1 > result.threshold == 0.2
    assert result.effective_samples < 50
    assert result.warning is not None
    assert "Take it over launches" in result.warning
    alarms = [independence(row).warning is not None for row in rng.lognormal(size=(1000, 100))]
    assert np.mean(alarms) <= 0.04
    with pytest.raises(MeasurementError, match="at least 10"):
        independence(range(9))
