from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from deep500.measure import clock
from deep500.measure.clock import Stopwatch, TimerCalibration, calibrate_timer


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    readings: list[int] = []
    monkeypatch.setattr(clock, "now_ns", lambda: readings.pop(0))
    yield readings
    calibrate_timer.cache_clear()


def test_stopwatch(moments: list[int]) -> None:
    moments[:] = [1_000, 501_000, 2_000_000, 2_000_007]
    watch = Stopwatch()

    assert watch.elapsed_s() == pytest.approx(500e-6)
    watch.restart()
    assert watch.elapsed_s() == pytest.approx(7e-9)


def test_stopwatch_waits_for_the_device_before_each_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(clock, "now_ns", lambda: events.append("read") or 0)

    Stopwatch(lambda: events.append("wait")).elapsed_s()

    assert events == ["wait", "read", "wait", "read"]


def test_clock_of_coarse_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that costs 30 ns to read and shows only multiples of 1000 ns."""
    moments = itertools.count(0, 30)
    monkeypatch.setattr(clock, "now_ns", lambda: next(moments) // 1000 * 1000)
    calibrate_timer.cache_clear()

    found = calibrate_timer()

    calibrate_timer.cache_clear()
    assert found.resolution_s == pytest.approx(1e-6)
    assert found.overhead_s < 100e-9
    assert found.shortest_sample_s(0.05) == pytest.approx(20e-6)


def test_costly_clock_decides_by_its_cost() -> None:
    assert TimerCalibration(1e-9, 100e-9).shortest_sample_s(0.05) == pytest.approx(2e-6)


def test_this_clock_is_usable() -> None:
    found = calibrate_timer()

    assert 0 < found.resolution_s < 1e-3
    assert 0 < found.overhead_s < 1e-3
    assert calibrate_timer() is found
