from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deep500.core.errors import MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import Statistic
from deep500.measure.results.summary import (
    Basis,
    achieved_flops,
    check_statistic,
    launches_needed,
    mean,
    summarise,
    throughput,
)
from deep500.measure.statistics.launches import in_process_interval, nested_interval, spread
from deep500.measure.workload import Work
from tests.unit.measure.results.support import P99, metric, rows, system

ROWS = st.lists(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=9).map(tuple), min_size=1, max_size=12)


# Interpolation, which numpy.quantile does, gives another last digit.
PAIR = (0.23038056131584508, 1.0595358274076372)


@given(ROWS)
@example([PAIR])
@example([(value,) for value in PAIR * 3])
def test_estimate_is_the_median_of_medians_to_the_last_digit(samples: list[tuple[float, ...]]) -> None:
    found = summarise(metric(samples))

    assert found.launch_values == tuple(map(statistics.median, samples))
    assert found.estimate == statistics.median(found.launch_values)
    assert found.samples == sum(map(len, samples))
    if found.interval is not None:
        assert found.interval.estimate == found.estimate
        assert found.interval.low <= found.estimate <= found.interval.high


@pytest.mark.parametrize("launches", [6, 7, 10, 30])
def test_from_six_launches_on_the_interval_is_over_launches(launches: int) -> None:
    samples = rows(launches=launches)

    found = summarise(metric(samples))

    nested = nested_interval(samples)
    assert found.basis is Basis.LAUNCHES
    assert (found.interval.low, found.interval.high) == pytest.approx((nested.interval.low, nested.interval.high))
    assert found.interval.coverage == nested.interval.coverage
    assert found.spread == nested.spread
    assert f"{launches} process launches" in found.note


def test_samples_of_several_launches_are_never_pooled() -> None:
    samples = [(float(number),) * 100 for number in range(1, 7)]  # pooled, the interval would be narrow

    found = summarise(metric(samples))

    assert (found.interval.low, found.interval.high) == (1.0, 6.0)


@pytest.mark.parametrize("launches", [2, 3, 4, 5])
def test_two_to_five_launches_have_no_interval(launches: int) -> None:
    found = summarise(metric(rows(launches=launches, samples=500)))

    assert found.interval is None
    assert found.basis is Basis.NONE
    assert found.note == f"no interval: one of 95 % needs 6 process launches, and there are {launches}"
    assert found.spread == spread(rows(launches=launches, samples=500))


def test_one_launch_has_an_interval_that_says_what_it_is() -> None:
    samples = rows(launches=1, samples=100)

    found = summarise(metric(samples))

    assert found.basis is Basis.IN_PROCESS
    assert found.interval == replace(in_process_interval(samples), estimate=found.estimate)
    assert "of one process" in found.note
    assert found.spread is None


@pytest.mark.parametrize("count", [1, 5])
def test_one_launch_of_few_samples_has_none(count: int) -> None:
    found = summarise(metric([(1.0, 2.0, 3.0, 4.0, 5.0)[:count]]))

    assert (found.interval, found.basis) == (None, Basis.NONE)
    assert f"there is 1, of {count} sample" in found.note


def test_higher_confidence_needs_more_launches() -> None:
    assert [launches_needed(confidence) for confidence in (0.9, 0.95, 0.99)] == [6, 6, 8]
    assert summarise(metric(rows(launches=7)), Statistic(confidence=0.99)).basis is Basis.NONE
    assert summarise(metric(rows(launches=8)), Statistic(confidence=0.99)).interval.coverage >= 0.99


def test_other_quantiles_are_taken_within_each_launch() -> None:
    samples = rows(launches=6, samples=368)

    found = summarise(metric(samples), P99)

    assert found.launch_values == tuple(float(np.quantile(row, 0.99)) for row in samples)
    assert "0.99 quantiles" in found.note


@pytest.mark.parametrize("launches", [1, 3, 10])
def test_quantile_of_too_few_samples_is_refused(launches: int) -> None:
    samples = rows(launches=launches, samples=400)
    samples[-1] = samples[-1][:367]

    with pytest.raises(MeasurementError, match=rf"has 367 samples in launch {launches}; the 0.99 .* at least 368"):
        summarise(metric(samples), P99)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "has no launches"),
        ([(1.0,), ()], "has no samples in launch 2"),
        ([(1.0, float("nan"))], "1 of 2 samples .* in launch 1 are NaN or infinite"),
        ([(1.0,), (float("inf"),)], "1 of 1 sample .* in launch 2 are NaN or infinite"),
    ],
)
def test_samples_that_say_nothing_are_refused(samples: Any, message: str) -> None:
    launches = metric([row or (1.0,) for row in samples]).launches
    kept = tuple(replace(launch, samples=row) for launch, row in zip(launches, samples))

    with pytest.raises(MeasurementError, match=message):
        summarise(replace(metric([(1.0,)]), launches=kept))


@pytest.mark.parametrize(
    "statistic",
    [
        Statistic("mean"),
        Statistic("median", 0.9),
        Statistic("quantile", 1.0),
        Statistic("quantile", 0.0),
        Statistic(confidence=1.0),
    ],
    ids=str,
)
def test_statistics_that_are_none_are_refused(statistic: Statistic) -> None:
    with pytest.raises(MeasurementError):
        check_statistic(statistic)
    with pytest.raises(MeasurementError):
        summarise(metric(rows()), statistic)


@pytest.mark.parametrize(
    ("answers", "together"),
    [((True, True), True), ((True, False), False), ((None, False), False), ((True, None), None), ((None, None), None)],
)
@pytest.mark.parametrize("what", ["converged", "steady"])
def test_one_bad_launch_makes_all_doubtful(answers: tuple[bool | None, ...], together: bool | None, what: str) -> None:
    samples = metric(rows(launches=2))
    launches = tuple(
        replace(launch, **{what: answer}, stop_reason="time is up", steady_reason="a trend")
        for launch, answer in zip(samples.launches, answers)
    )

    found = summarise(replace(samples, launches=launches))

    assert getattr(found, what) is together
    told = "1 of 2 launches did not converge: time is up", "1 of 2 launches kept no steady level: a trend"
    assert (told[what == "steady"] in found.warnings) is (together is False)


def test_correlated_samples_of_one_process_are_told() -> None:
    noise = np.random.default_rng(1).standard_normal(400)
    series = np.zeros(400)
    for index in range(1, 400):
        series[index] = 0.9 * series[index - 1] + noise[index]
    correlated = tuple(np.exp(0.1 * series))

    assert any("correlated" in warning for warning in summarise(metric([correlated])).warnings)
    assert summarise(metric(rows(launches=1, samples=400))).warnings == ()
    assert summarise(metric([correlated] * 6)).warnings == ()  # the interval is not over them


def test_throughput_is_items_over_the_time() -> None:
    samples = [(1.0,), (2.0,), (4.0,), (5.0,), (8.0,), (10.0,)]

    found = throughput(system(samples, work=Work(items=20, item="sample")))

    assert (found.estimate, found.interval.low, found.interval.high) == (20 / 4.5, 2.0, 20.0)
    assert found.interval.estimate == found.estimate
    assert (found.name, found.unit, found.kind, found.direction) == (
        "Throughput",
        "samples/s",
        MetricKind.RATE,
        Direction.HIGHER,
    )
    assert found.launch_values == (20.0, 10.0, 5.0, 4.0, 2.5, 2.0)
    assert found.spread is None
    assert found.note.startswith("20 over the time: median of the medians of 6 process launches")


def test_achieved_flops_are_operations_over_the_time() -> None:
    found = achieved_flops(system([(2.0,)], work=Work(flops=1e9)))

    assert (found.estimate, found.unit, found.interval) == (5e8, "flop/s", None)


@pytest.mark.parametrize(
    "changes",
    [
        {"work": Work()},
        {"work": Work(items=0.0, flops=0.0)},
        {"metrics": (metric(rows(), name="PeakMemory", unit="B"),)},
        {"metrics": (metric([(0.0, 0.0, 0.0)]),)},
    ],
    ids=["unknown", "nothing", "not timed", "no time"],
)
def test_rates_that_are_not_known_are_none(changes: dict[str, Any]) -> None:
    assert throughput(system(**changes)) is None
    assert achieved_flops(system(**changes)) is None


def test_means_fit_what_the_values_are() -> None:
    samples = [(1.0, 3.0), (4.0,)]

    assert mean(metric(samples)) == 3.0
    assert mean(metric(samples, kind=MetricKind.SCORE)) == 3.0
    assert mean(metric(samples, kind=MetricKind.RATE)) == pytest.approx(2 / (1 / 1.5 + 1 / 4))


def test_mean_of_ratios_is_refused() -> None:
    with pytest.raises(MeasurementError, match="Ratios are not averaged"):
        mean(metric([(1.0, 3.0)], kind=MetricKind.RATIO))
