from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metrics.achieved_flops import AchievedFlops
from deep500.measure.peak import Peak
from deep500.measure.workload import Work
from tests.unit.measure.metrics.support import run, set_clock, set_durations

PEAK = Peak(flops_per_s=8e12, bytes_per_s=1e10, dtype="float32", threads=2, how="given")


def test_value_is_the_operations_over_the_median_time(monkeypatch: pytest.MonkeyPatch) -> None:
    set_durations(monkeypatch, 1_000_000, 5_000_000, 2_000_000)
    metric = AchievedFlops(4_000_000_000, reruns=3, avg_over=1)
    run(metric, 3)

    assert metric.measure() == pytest.approx(2e12)
    assert metric.share_of_peak() is None
    assert metric.measure_summary() == "2 Tflop/s (4 Gflop in 2 ms, median of 3)"


def test_share_of_the_peak_stands_beside_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    set_durations(monkeypatch, *[2_000_000] * 5, 4_000_000)
    metric = AchievedFlops(Work(flops=4e9, dtype="float32"), peak=PEAK, reruns=6, avg_over=1)
    run(metric, 6)

    assert metric.share_of_peak() == pytest.approx(0.25)
    assert metric.measure_summary() == (
        "2 Tflop/s [1, 2] (4 Gflop in 2 ms, median of 6, in-process 95 % interval; "
        "25 % of the measured float32 peak of 8 Tflop/s)"
    )
    assert metric.fresh().peak is PEAK


def test_peak_of_another_dtype_is_refused() -> None:
    with pytest.raises(MeasurementError, match="Work in float16 is not held against the peak of float32"):
        AchievedFlops(Work(flops=1, dtype="float16"), peak=PEAK)
    assert AchievedFlops(Work(flops=1), peak=PEAK).flops == 1.0


def test_what_it_is() -> None:
    metric = AchievedFlops(1)

    assert (metric.unit, metric.direction, metric.kind) == ("flop/s", Direction.HIGHER, MetricKind.RATE)
    assert (metric.reruns, metric.requires_outputs) == (100, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "operations were given as None"),
        ({"work": Work()}, "operations were given"),
        ({"work": 1, "peak": 1e12}, r"accepted is what measured_peak\(\) returns"),
        ({"work": 1, "reruns": 1.5}, "reruns"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        AchievedFlops(**arguments)


def test_no_time_gives_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = AchievedFlops(1, peak=PEAK)
    with pytest.raises(InvalidInputError, match="timed nothing"):
        metric.measure()
    set_clock(monkeypatch, 3, 3)
    run(metric, 1)
    with pytest.raises(MeasurementError, match="clock did not move"):
        metric.share_of_peak()
