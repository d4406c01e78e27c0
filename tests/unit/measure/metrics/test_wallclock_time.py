from __future__ import annotations

import time

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics import _timing
from deep500.measure.metrics.wallclock_time import WallclockTime
from deep500.measure.statistics.quantiles import quantile_interval
from tests.unit.measure.metrics.support import run, set_clock, set_durations


def test_median_of_the_samples_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, 0, 1_000, 5_000, 8_000, 10_000, 12_000)
    metric = WallclockTime(reruns=3, avg_over=1)

    run(metric, 3)

    assert metric.samples == pytest.approx([1e-6, 3e-6, 2e-6])
    assert metric.measure() == pytest.approx(2e-6)
    assert metric.measure() == pytest.approx(2e-6)
    assert metric.measure_summary() == "2 us (median of 3; an interval needs 6)"


def test_consecutive_runs_are_averaged_and_the_time_between_them_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_clock(monkeypatch, 0, 10, 1_000, 1_030, 2_000, 2_007)
    metric = WallclockTime(reruns=3, avg_over=2)

    run(metric, 3)

    assert metric.samples == pytest.approx([20e-9, 7e-9])


def test_one_run_is_measured_whatever_the_group_size() -> None:
    metric = WallclockTime()
    metric.begin(None)
    time.sleep(0.002)
    metric.end(None)

    assert 0.002 <= metric.measure() < 1.0
    assert metric.fresh().samples == []


def test_run_that_failed_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, 0, 100, 101)
    metric = WallclockTime(1, 1)

    metric.begin(None)
    metric.begin(None)
    metric.end(None)

    assert metric.samples == pytest.approx([1e-9])


@pytest.mark.parametrize(
    ("seconds", "summary"), [(12.3456, "12.35 s"), (0.25, "250 ms"), (3.5e-5, "35 us"), (5e-8, "50 ns")]
)
def test_summary_has_the_unit_that_suits(monkeypatch: pytest.MonkeyPatch, seconds: float, summary: str) -> None:
    set_clock(monkeypatch, 0, round(seconds * 1e9))
    metric = WallclockTime(0, 1)
    run(metric, 1)

    assert metric.measure_summary() == summary


def test_summary_of_few_runs_says_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    set_durations(monkeypatch, 10, 20, 30)
    metric = WallclockTime(3, 10)
    run(metric, 3)

    assert metric.measure_summary() == "20 ns (mean of 3 runs)"


def test_summary_has_the_exact_interval_where_there_are_enough_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    durations_ns = np.random.default_rng(5).permutation(np.arange(2_000_000, 2_100_000, 1000))
    set_durations(monkeypatch, *map(int, durations_ns))
    metric = WallclockTime(100, 1)
    run(metric, 100)

    # Of 100 samples the 40th and the 61st enclose the median with a confidence of 96.5 %.
    assert metric.measure_summary() == "2.05 ms [2.039, 2.06] (median of 100, in-process 95 % interval)"
    assert metric.median_interval() == quantile_interval(durations_ns * 1e-9)


def test_interval_appears_with_the_sixth_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    set_durations(monkeypatch, *range(10, 16))
    metric = WallclockTime(6, 1)
    run(metric, 5)
    assert metric.median_interval() is None

    run(metric, 1)

    assert metric.measure_summary() == "12.5 ns [10, 15] (median of 6, in-process 95 % interval)"


@pytest.mark.parametrize(("runs", "described"), [(60, "6 means of 10 runs"), (55, "6 means of up to 10 runs")])
def test_summary_says_what_a_sample_is(monkeypatch: pytest.MonkeyPatch, runs: int, described: str) -> None:
    set_durations(monkeypatch, *[1000] * runs)
    metric = WallclockTime(runs)
    run(metric, runs)

    assert metric.measure_summary() == f"1 us [1, 1] (median of {described}, in-process 95 % interval)"


def test_device_has_finished_before_each_reading_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    clock = iter([100, 350])
    monkeypatch.setattr(_timing, "now_ns", lambda: calls.append("clock") or next(clock))
    metric = WallclockTime(0, 1)
    metric.synchronize = lambda: calls.append("device")

    metric.begin()
    calls.append("run")
    metric.end()

    assert calls == ["device", "clock", "run", "device", "clock"]
    assert metric.durations_s == pytest.approx([250e-9])


def test_wrong_use_is_said() -> None:
    with pytest.raises(InvalidInputError, match="timed nothing"):
        WallclockTime().measure()
    with pytest.raises(InvalidInputError, match="begin"):
        WallclockTime().end(None)


@pytest.mark.parametrize(("reruns", "avg_over"), [(-1, 1), (1.5, 1), (True, 1), (1, 0), (1, None)])
def test_numbers_that_are_not_accepted(reruns: int, avg_over: int) -> None:
    with pytest.raises(InvalidInputError, match="whole numbers"):
        WallclockTime(reruns, avg_over)


def test_what_it_is() -> None:
    metric = WallclockTime(5)

    assert (metric.unit, metric.direction, metric.kind) == ("s", Direction.LOWER, MetricKind.COST)
    assert (metric.reruns, metric.requires_inputs, metric.requires_outputs) == (5, False, False)


def test_time_of_an_earlier_process_is_counted_once() -> None:
    metric = WallclockTime()
    metric.go_on(100.0)
    for _ in range(2):
        metric.begin()
        metric.end()

    assert 100.0 <= metric.durations_s[0] < 101.0
    assert metric.durations_s[1] < 1.0
