from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DeviceError, InvalidInputError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.metric_test import measure_metrics
from deep500.measure.metrics import peak_memory
from deep500.measure.metrics._resident_memory import SampledPeak
from deep500.measure.metrics.peak_memory import PeakMemory

MEBIBYTE = 2**20


class GivenPeaks:
    """Stands for the host: what is resident before each run, and the peak of it."""

    method = "given"

    def __init__(self, *pairs: tuple[int, int]) -> None:
        self.pairs = list(pairs)

    def start(self) -> int:
        return self.pairs[0][0]

    def stop(self) -> int:
        return self.pairs.pop(0)[1]


def run(metric: PeakMemory, runs: int) -> None:
    for _ in range(runs):
        metric.begin()
        metric.end()


def test_largest_peak_with_what_was_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    host = GivenPeaks((MEBIBYTE, 3 * MEBIBYTE), (2 * MEBIBYTE, 7 * MEBIBYTE), (4 * MEBIBYTE, 5 * MEBIBYTE))
    monkeypatch.setattr(peak_memory, "open_resident_peak", lambda: host)
    metric = PeakMemory(reruns=3)
    run(metric, 3)

    assert metric.samples == [3 * MEBIBYTE, 7 * MEBIBYTE, 5 * MEBIBYTE]
    assert metric.measure() == 7.0 * MEBIBYTE
    assert (metric.method, metric.before_bytes) == ("given", 2 * MEBIBYTE)
    assert metric.measure_summary() == "7.0 MiB (5.0 MiB more than before the run, given, largest of 3 runs)"
    assert (metric.fresh().samples, metric.fresh().method) == ([], "")


@pytest.mark.parametrize("sampled", [False, True])
def test_peak_of_a_real_run_is_seen_after_it_is_given_back(monkeypatch: pytest.MonkeyPatch, sampled: bool) -> None:
    if sampled:
        monkeypatch.setattr(peak_memory, "open_resident_peak", SampledPeak)

    def test() -> float:
        block = np.ones(200 * MEBIBYTE // 8)
        time.sleep(0.1)  # for the thread that looks
        return float(block[0])

    [found] = measure_metrics([PeakMemory()], test)
    metric = found.metric

    assert isinstance(metric, PeakMemory)
    assert metric.before_bytes is not None
    assert 150 * MEBIBYTE < found.value - metric.before_bytes < 320 * MEBIBYTE
    assert metric.method in found.summary
    assert metric.method == "sampled every 1 ms" or not sampled


def test_device_is_reset_before_and_asked_after_each_run_when_it_has_finished() -> None:
    calls: list[str] = []
    peaks = iter([5, 9, 7])
    metric = PeakMemory(
        device_peak=lambda: calls.append("peak") or next(peaks), reset=lambda: calls.append("reset"), reruns=3
    )
    metric.synchronize = lambda: calls.append("wait")
    run(metric, 3)

    assert metric.measure() == 9.0
    assert calls == ["wait", "reset", "wait", "peak"] * 3
    assert (metric.method, metric.before_bytes) == ("device", None)
    assert metric.measure_summary() == "0.0 MiB (device, largest of 3 runs)"


def raising(error: Exception) -> Any:
    def hook() -> None:
        raise error

    return hook


@pytest.mark.parametrize(
    ("hooks", "reason"),
    [
        ({"device_peak": lambda: None, "reset": lambda: None}, "the device does not tell its peak"),
        ({"device_peak": raising(DeviceError("no such GPU")), "reset": lambda: None}, "no such GPU"),
        ({"device_peak": lambda: 3, "reset": raising(NotImplementedError("not here"))}, "not here"),
    ],
)
def test_device_that_cannot_tell_is_unavailable(hooks: dict[str, Any], reason: str) -> None:
    metric = PeakMemory(**hooks)
    run(metric, 1)

    assert math.isnan(metric.measure())
    assert metric.measure_summary() == f"unavailable: {reason}"
    assert not metric.accepts(metric.measure(), 1e12)


def test_other_errors_of_a_device_are_heard() -> None:
    metric = PeakMemory(device_peak=raising(ZeroDivisionError()), reset=lambda: None)

    with pytest.raises(ZeroDivisionError):
        run(metric, 1)


def test_what_it_is_and_wrong_use() -> None:
    metric = PeakMemory()

    assert (metric.unit, metric.direction, metric.kind) == ("B", Direction.LOWER, MetricKind.COST)
    assert (metric.reruns, metric.requires_inputs, metric.requires_outputs) == (1, False, False)
    with pytest.raises(InvalidInputError, match="seen no run"):
        metric.measure()
    with pytest.raises(InvalidInputError, match="not told the begin"):
        metric.end()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device_peak": lambda: 1}, "belong together"),
        ({"reset": lambda: None}, "belong together"),
        ({"device_peak": 5, "reset": lambda: None}, "device_peak was given as 5"),
        ({"reruns": -1}, "reruns"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        PeakMemory(**arguments)
