from __future__ import annotations

import time

import pytest

from deep500.core.errors import InvalidInputError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics import wallclock_time
from deep500.measure.metrics.wallclock_time import WallclockTime


class Clock:
    """Answers perf_counter_ns with given times."""

    def __init__(self, *times_ns: int) -> None:
        self.times_ns = list(times_ns)

    def perf_counter_ns(self) -> int:
        return self.times_ns.pop(0)


def run(metric: WallclockTime, runs: int) -> None:
    for _ in range(runs):
        metric.begin(None)
        metric.end(None)


def test_median_of_the_samples_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wallclock_time, "time", Clock(0, 1_000, 5_000, 8_000, 10_000, 12_000))
    metric = WallclockTime(reruns=3, avg_over=1)

    run(metric, 3)

    assert metric.samples == pytest.approx([1e-6, 3e-6, 2e-6])
    assert metric.measure() == pytest.approx(2e-6)
    assert metric.measure() == pytest.approx(2e-6)
    assert metric.measure_summary() == "2 us"


def test_consecutive_runs_are_averaged_and_the_time_between_them_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wallclock_time, "time", Clock(0, 10, 1_000, 1_030, 2_000, 2_007))
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
    monkeypatch.setattr(wallclock_time, "time", Clock(0, 100, 101))
    metric = WallclockTime(1, 1)

    metric.begin(None)
    metric.begin(None)
    metric.end(None)

    assert metric.samples == pytest.approx([1e-9])


@pytest.mark.parametrize(
    ("seconds", "summary"), [(12.3456, "12.35 s"), (0.25, "250 ms"), (3.5e-5, "35 us"), (5e-8, "50 ns")]
)
def test_summary_has_the_unit_that_suits(monkeypatch: pytest.MonkeyPatch, seconds: float, summary: str) -> None:
    monkeypatch.setattr(wallclock_time, "time", Clock(0, round(seconds * 1e9)))
    metric = WallclockTime(0, 1)
    run(metric, 1)

    assert metric.measure_summary() == summary


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
