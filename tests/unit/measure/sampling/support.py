"""Workloads that cost time on a clock that only they move."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from deep500.measure.sampling import rounds, sampler, sessions, warm_up
from deep500.measure.workload import Workload


class Clock:
    """Nanoseconds that pass only when told to, and a little at each reading."""

    def __init__(self, reading_ns: int = 0) -> None:
        self.moment_ns = 0
        self.readings = 0
        self._reading_ns = reading_ns

    def __call__(self) -> int:
        self.readings += 1
        self.moment_ns += self._reading_ns
        return self.moment_ns

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (rounds, sampler, sessions, warm_up):
            monkeypatch.setattr(module, "now_ns", self)


class Timed(Workload):
    """Takes the seconds that a function of the run's number says."""

    def __init__(self, clock: Clock, cost_s: Callable[[int], float] | float, name: str = "timed") -> None:
        self.spec = name
        self.runs = 0
        self._clock = clock
        self._cost_s = cost_s if callable(cost_s) else lambda _: cost_s

    def run(self) -> None:
        self._clock.moment_ns += round(self._cost_s(self.runs) * 1e9)
        self.runs += 1


def drawn(values: Iterator[float]) -> Callable[[int], float]:
    return lambda _: next(values)
