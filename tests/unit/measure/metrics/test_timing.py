from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.measure.metrics._timing import TimedMetric
from tests.unit.measure.metrics.support import run, set_clock, set_durations


class Timed(TimedMetric):
    unit = "s"

    def measure(self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None) -> float:
        return self.median_s()


def test_durations_and_samples_are_those_between_begin_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    set_durations(monkeypatch, 10, 30, 50, 70, 100)
    metric = Timed(5, 2)
    run(metric, 5)

    assert metric.durations_s == pytest.approx([10e-9, 30e-9, 50e-9, 70e-9, 100e-9])
    assert metric.samples == pytest.approx([20e-9, 60e-9, 100e-9])
    assert metric.measure() == pytest.approx(60e-9)
    assert metric.described_samples() == "3 means of up to 2 runs"
    assert metric.fresh().durations_s == []


def test_begin_without_an_end_is_forgotten_and_an_end_needs_a_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, 0, 100, 107, 200)
    metric = Timed(1, 1)
    metric.begin()
    metric.begin()
    metric.end()

    assert metric.durations_s == pytest.approx([7e-9])
    with pytest.raises(InvalidInputError, match="Timed was told the end of a run"):
        metric.end()
    assert len(metric.durations_s) == 1


def test_nothing_timed_has_no_median() -> None:
    with pytest.raises(InvalidInputError, match="Timed has timed nothing yet"):
        Timed().measure()
    assert Timed().median_interval() is None


def test_device_that_fails_is_heard() -> None:
    def fail() -> None:
        raise RuntimeError("lost")

    metric = Timed()
    metric.synchronize = fail

    with pytest.raises(RuntimeError, match="lost"):
        metric.begin()
