from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics.throughput import Throughput
from deep500.measure.statistics.means import mean_of
from deep500.measure.workload import Work
from tests.unit.measure.metrics.support import run, set_clock, set_durations


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=20), st.integers(1, 1000))
def test_value_is_all_items_over_all_time_which_is_the_harmonic_mean(
    monkeypatch: pytest.MonkeyPatch, durations_ns: list[int], items: int
) -> None:
    set_durations(monkeypatch, *durations_ns)
    metric = Throughput(items, reruns=len(durations_ns))
    run(metric, len(durations_ns))

    assert metric.measure() == pytest.approx(float(Fraction(items * len(durations_ns) * 10**9, sum(durations_ns))))
    rates = [items / (duration * 1e-9) for duration in durations_ns]
    assert metric.measure() == pytest.approx(mean_of(rates, metric.kind))


def test_slow_runs_count_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    set_durations(monkeypatch, 10**9, 3 * 10**9)
    metric = Throughput(6, reruns=2)
    run(metric, 2)

    assert metric.measure() == 3.0  # not 4, the arithmetic mean of 6 and 2
    assert metric.measure_summary() == "3 items/s (items over the mean time of 2 runs)"


def test_summary_has_the_interval_of_the_median_run(monkeypatch: pytest.MonkeyPatch) -> None:
    set_durations(monkeypatch, *[2 * 10**9] * 3, *[4 * 10**9] * 4)
    metric = Throughput(Work(items=8, item="sample"), reruns=7, avg_over=1)
    run(metric, 7)

    assert metric.unit == "samples/s"
    assert metric.measure_summary() == (
        "2.545 samples/s (items over the mean time of 7 runs; at the median 2 [2, 4], in-process 95 % interval)"
    )


def test_one_run_needs_no_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    set_durations(monkeypatch, 500_000_000)
    metric = Throughput(32, item="image", reruns=0)
    run(metric, 1)

    assert metric.measure_summary() == "64 images/s"


def test_what_it_is() -> None:
    metric = Throughput()

    assert (metric.unit, metric.direction, metric.kind) == ("items/s", Direction.HIGHER, MetricKind.RATE)
    assert (metric.reruns, metric.requires_inputs, metric.requires_outputs) == (100, False, False)
    assert Throughput(Work(items=3, item="token"), item="word").unit == "words/s"
    assert Throughput(Work(items=3)).fresh().items == 3.0


@pytest.mark.parametrize("items", [0, -1, math.nan, math.inf, True, "3", None, Work(), Work(items=0)])
def test_items_that_are_not_accepted(items: Any) -> None:
    with pytest.raises(InvalidInputError, match="items of one run"):
        Throughput(items)


def test_other_wrong_use_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="An item was named"):
        Throughput(3, item="")
    with pytest.raises(InvalidInputError, match="reruns"):
        Throughput(3, reruns=-1)
    with pytest.raises(InvalidInputError, match="timed nothing"):
        Throughput(3).measure()
    set_clock(monkeypatch, 5, 5)
    metric = Throughput(3)
    run(metric, 1)
    with pytest.raises(MeasurementError, match="clock did not move during 1 runs"):
        metric.measure()
