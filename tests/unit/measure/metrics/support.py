"""A clock that shows given times, for the metrics that read one."""

from __future__ import annotations

import pytest

from deep500.measure.metrics import _timing


def set_clock(monkeypatch: pytest.MonkeyPatch, *times_ns: int) -> None:
    """Let the readings of the clock be these, one after another."""
    readings = iter(times_ns)
    monkeypatch.setattr(_timing, "now_ns", lambda: next(readings))


def set_durations(monkeypatch: pytest.MonkeyPatch, *durations_ns: int) -> None:
    """Let the runs of one metric last so long, one after another."""
    times: list[int] = []
    for number, duration in enumerate(durations_ns):
        start = number * 10**12
        times += [start, start + duration]
    set_clock(monkeypatch, *times)


def run(metric: _timing.TimedMetric, runs: int) -> None:
    for _ in range(runs):
        metric.begin(None)
        metric.end(None)
