"""The clock that measurements use: how fine it is, and what a look at it costs."""

from __future__ import annotations

import functools
import itertools
import statistics
import time

from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError

__all__ = ["clock"]

_SOURCE = "/sys/devices/system/clocksource/clocksource0"

#: Enough calls that the least step is seen; about 2 ms in all.
_STEPS, _BATCHES, _BATCH = 10_000, 21, 500


def clock(system: System) -> dict[str, Field]:
    """Tell the resolution, the least measured step and the cost of ``time.perf_counter_ns``."""
    information = functools.cache(lambda: time.get_clock_info("perf_counter"))
    return {
        "implementation": Field("string", "What stands behind it.", lambda: information().implementation),
        "resolution_s": Field("number", "Resolution that the system states.", lambda: information().resolution),
        "monotonic": Field("boolean", "Whether it never goes back.", lambda: information().monotonic),
        "adjustable": Field("boolean", "Whether it can be set.", lambda: information().adjustable),
        "least_step_ns": Field("integer", "Least difference above 0 of two calls in a row.", _least_step_ns),
        "call_cost_ns": Field("number", "Median cost of a call, with the loop around it.", _call_cost_ns),
        "source": Field("string", "The kernel's clock source.", lambda: system.read(f"{_SOURCE}/current_clocksource")),
        "sources": Field(
            "array", "Clock sources to choose from.", lambda: system.read(f"{_SOURCE}/available_clocksource").split()
        ),
    }


def _least_step_ns() -> int:
    now = time.perf_counter_ns
    moments = [now() for _ in range(_STEPS)]
    steps = [later - earlier for earlier, later in itertools.pairwise(moments) if later > earlier]
    if not steps:
        raise UnreadableError(f"the clock did not move within {_STEPS} calls")
    return min(steps)


def _call_cost_ns() -> float:
    now = time.perf_counter_ns
    costs = []
    for _ in range(_BATCHES):
        started = now()
        for _ in range(_BATCH):
            now()
        costs.append((now() - started) / _BATCH)
    return statistics.median(costs)
