from __future__ import annotations

import math
import timeit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from deep500.core.errors import MeasurementError
from deep500.measure.statistics import quantiles
from deep500.measure.statistics.quantiles import (
    Interval,
    Ranks,
    order_statistic_ranks,
    quantile_interval,
    quantile_intervals,
    samples_needed,
)
from tests.unit.measure.statistics.simulation import DISTRIBUTIONS, median_coverage

SIZES = (6, 10, 30, 100)

rows = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=6, max_size=60)


def coverages_outside(low: float = 0.94, high: float = 0.99) -> list[str]:
    """Return where the coverage of the nominal 95 % interval of the median is not between its limits."""
    found = {f"{name}, n = {n}": median_coverage(name, n) for name in DISTRIBUTIONS for n in SIZES}
    return [f"{case}: {coverage:.4f}" for case, coverage in found.items() if not low <= coverage <= high]


def test_median_is_covered_as_often_as_promised() -> None:
    assert coverages_outside() == []


@pytest.mark.parametrize("shift", [1, -1], ids=["too narrow", "too wide"])
def test_ranks_off_by_one_would_be_noticed(monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    def planted(size: int, quantile: float, confidence: float) -> Ranks:
        ranks = order_statistic_ranks(size, quantile, confidence)
        return Ranks(max(1, ranks.low + shift), min(size, ranks.high - shift), ranks.coverage)

    monkeypatch.setattr(quantiles, "order_statistic_ranks", planted)

    assert len(coverages_outside()) >= len(DISTRIBUTIONS)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_reported_coverage_is_the_real_one(name: str) -> None:
    for size in SIZES:
        assert median_coverage(name, size) == pytest.approx(order_statistic_ranks(size).coverage, abs=0.006)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("quantile", [0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
@pytest.mark.parametrize("size", [6, 7, 10, 11, 36, 72, 100, 333])
def test_interval_is_that_of_scipy(size: int, quantile: float, confidence: float) -> None:
    samples = np.random.default_rng(size).lognormal(size=size)
    test = stats.quantile_test(samples, p=quantile)
    scipy = test.confidence_interval(confidence_level=confidence)

    if size < samples_needed(quantile, confidence):
        assert not np.isfinite([scipy.low, scipy.high]).all()
        with pytest.raises(MeasurementError, match=f"at least {samples_needed(quantile, confidence)} samples"):
            quantile_interval(samples, quantile, confidence)
        return
    interval = quantile_interval(samples, quantile, confidence)
    assert (interval.low, interval.high) == (scipy.low, scipy.high)
    assert interval.estimate == pytest.approx(np.quantile(samples, quantile), rel=1e-14)
    assert interval.confidence_requested == confidence <= interval.coverage <= 1


def test_least_numbers_of_samples_are_those_known() -> None:
    known = {0.5: 6, 0.9: 36, 0.1: 36, 0.95: 72, 0.99: 368, 0.01: 368, 0.999: 3688}

    assert {quantile: samples_needed(quantile) for quantile in known} == known
    for quantile, needed in known.items():
        assert order_statistic_ranks(needed, quantile).coverage >= 0.95
        with pytest.raises(MeasurementError, match=f"at least {needed} samples; there are {needed - 1}"):
            order_statistic_ranks(needed - 1, quantile)


def test_p99_of_50_samples_is_refused_with_the_number_needed() -> None:
    with pytest.raises(MeasurementError, match=r"0\.99 quantile needs at least 368 samples; there are 50"):
        quantile_interval(np.arange(50.0), 0.99)


@pytest.mark.parametrize("presorted", [False, True])
@pytest.mark.parametrize("place", [0, 3, 9])
def test_nan_is_refused(place: int, presorted: bool) -> None:
    samples = np.arange(10.0)
    samples[place] = math.nan

    with pytest.raises(MeasurementError, match="1 of 10 samples are NaN"):
        quantile_interval(samples, presorted=presorted)
    with pytest.raises(MeasurementError, match="1 of 20 samples are NaN"):
        quantile_intervals(np.stack([np.arange(10.0), samples]))


@pytest.mark.parametrize(
    ("samples", "quantile", "confidence", "message"),
    [
        ([], 0.5, 0.95, "there are 0"),
        (np.ones((2, 9)), 0.5, 0.95, r"shape is \(2, 9\)"),
        (range(9), 0.0, 0.95, "quantile lies between 0 and 1"),
        (range(9), 1.0, 0.95, "quantile lies between 0 and 1"),
        (range(9), math.nan, 0.95, "quantile lies between 0 and 1"),
        (range(9), 0.5, 1.0, "confidence lies between 0 and 1"),
        (range(9), 0.5, 95, "confidence lies between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(samples: object, quantile: float, confidence: float, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        quantile_interval(samples, quantile, confidence)  # type: ignore[arg-type]


def test_one_row_is_not_taken_for_many() -> None:
    with pytest.raises(MeasurementError, match="one row: quantile_interval"):
        quantile_intervals([1.0] * 9)


@given(samples=rows, quantile=st.sampled_from([0.3, 0.5, 0.6]), seed=st.integers(0, 99))
def test_order_does_not_matter_and_the_estimate_lies_within(samples: list[float], quantile: float, seed: int) -> None:
    samples = samples * 2  # enough for these quantiles
    interval = quantile_interval(samples, quantile)

    assert interval == quantile_interval(np.random.default_rng(seed).permutation(samples), quantile)
    assert interval == quantile_interval(sorted(samples), quantile, presorted=True)
    assert interval.contains(interval.estimate)
    assert min(samples) <= interval.low <= interval.high <= max(samples)


@given(samples=rows)
def test_ends_follow_monotone_transformations(samples: list[float]) -> None:
    def transform(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.cbrt(values) * 3 + 1

    interval, transformed = quantile_interval(samples), quantile_interval(transform(np.array(samples)))
    mirrored = quantile_interval(-np.array(samples))

    assert [transformed.low, transformed.high] == transform(np.array([interval.low, interval.high])).tolist()
    assert (mirrored.low, mirrored.high) == (-interval.high, -interval.low)


@pytest.mark.parametrize(("size", "quantile"), [(6, 0.5), (31, 0.5), (101, 0.9), (400, 0.99)])
def test_many_rows_at_once_are_each_row_alone(size: int, quantile: float) -> None:
    table = np.random.default_rng(0).lognormal(size=(3, 5, size))
    table[0, 0, -1] = math.inf

    many = quantile_intervals(table, quantile)

    for index in np.ndindex(3, 5):
        alone = quantile_interval(table[index], quantile)
        assert (many.estimate[index], many.low[index], many.high[index]) == (alone.estimate, alone.low, alone.high)
        assert (many.coverage, many.confidence_requested) == (alone.coverage, alone.confidence_requested)


def test_runs_that_were_given_up_are_longer_than_all_others() -> None:
    assert quantile_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, math.inf, math.inf, math.inf, math.inf]) == Interval(
        5.5, 2.0, math.inf, 0.95, order_statistic_ranks(10).coverage
    )


def test_widths() -> None:
    assert Interval(2.0, 1.0, 4.0, 0.95, 0.95).half_width == 1.5
    assert Interval(-2.0, -3.0, 0.0, 0.95, 0.95).relative_half_width == 0.75
    assert Interval(0.0, 0.0, 0.0, 0.95, 0.95).relative_half_width == 0
    assert Interval(0.0, -1.0, 0.0, 0.95, 0.95).relative_half_width == math.inf


def test_a_call_takes_less_than_20_us() -> None:
    samples = np.random.default_rng(0).lognormal(size=100)
    ordered = np.sort(samples)

    for call in (lambda: quantile_interval(samples), lambda: quantile_interval(ordered, presorted=True)):
        assert min(timeit.repeat(call, number=100, repeat=20)) / 100 < 20e-6  # the others measure the machine's load
