"""The one clock of the project, what reading it costs, and a stopwatch over it.

Nothing outside ``deep500/measure`` reads a clock of its own; an architecture test holds that.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Stopwatch", "TimerCalibration", "calibrate_timer", "now_ns"]

#: Reads the clock, in nanoseconds from an arbitrary moment: monotonic, and not set by the network's time.
now_ns: Callable[[], int] = time.perf_counter_ns


@dataclass(frozen=True)
class TimerCalibration:
    """What the clock can tell apart and what reading it costs.

    Attributes:
        resolution_s: Smallest step between two readings that differ.
        overhead_s: Median cost of one reading.
    """

    resolution_s: float
    overhead_s: float

    def shortest_sample_s(self, share: float) -> float:
        """Return how long a sample must last so that neither overhead nor resolution is more than a share of it."""
        return max(self.resolution_s, self.overhead_s) / share


@functools.cache
def calibrate_timer(readings: int = 2000) -> TimerCalibration:
    """Measure the clock; a fraction of a millisecond, once a process.

    Args:
        readings: Number of pairs of readings.
    """
    steps = []
    for _ in range(readings):
        first = now_ns()
        second = now_ns()
        while second == first:
            second = now_ns()
        steps.append(second - first)
    costs = []
    for _ in range(max(1, readings // 20)):
        start = now_ns()
        for _ in range(20):
            now_ns()
        costs.append((now_ns() - start) / 21)
    costs.sort()
    return TimerCalibration(min(steps) * 1e-9, costs[len(costs) // 2] * 1e-9)


class Stopwatch:
    """Seconds since it was started; waits for a device first where there is one.

    Example:
        >>> watch = Stopwatch()
        >>> watch.elapsed_s() >= 0
        True
    """

    def __init__(self, synchronize: Callable[[], None] | None = None) -> None:
        """Start, when the device is idle.

        Args:
            synchronize: Waits until the device has finished what was asked of it; called before each reading.
        """
        self._synchronize = synchronize
        self.restart()

    def restart(self) -> None:
        """Start again from zero."""
        if self._synchronize is not None:
            self._synchronize()
        self._start_ns = now_ns()

    def elapsed_s(self) -> float:
        """Return the seconds since the start, when the device has finished."""
        if self._synchronize is not None:
            self._synchronize()
        return (now_ns() - self._start_ns) * 1e-9
