"""What else the machine is doing."""

from __future__ import annotations

import functools

from deep500.measure.environment.cpu_time import read_cpu_time
from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError

__all__ = ["load"]


def load(system: System) -> dict[str, Field]:
    """Tell how busy the machine is, and how much of it a hypervisor took away."""
    averages = functools.cache(lambda: system.read("/proc/loadavg").split())
    return {
        "average_1min": Field("number", "Load average of a minute.", lambda: _number(averages(), 0)),
        "average_5min": Field("number", "Load average of 5 minutes.", lambda: _number(averages(), 1)),
        "average_15min": Field("number", "Load average of 15 minutes.", lambda: _number(averages(), 2)),
        "runnable_tasks": Field(
            "integer", "Tasks that run or wait for a CPU, this one included.", lambda: _runnable(averages())
        ),
        "cpu_pressure_10s_percent": Field(
            "number", "Share of 10 s in which some task waited for a CPU.", lambda: _pressure(system)
        ),
        "steal_share": Field(
            "number", "Share of the CPU time since the start that a hypervisor gave to others.", lambda: _steal(system)
        ),
        "uptime_s": Field("number", "Time since the start.", lambda: _number(system.read("/proc/uptime").split(), 0)),
    }


def _number(words: list[str], index: int) -> float:
    if len(words) <= index:
        raise UnreadableError(f"the kernel's line has {len(words)} words, number {index + 1} was asked for")
    return float(words[index])


def _runnable(averages: list[str]) -> int:
    if len(averages) < 4:
        raise UnreadableError("/proc/loadavg does not count the tasks")
    return int(averages[3].partition("/")[0])


def _pressure(system: System) -> float:
    for line in system.read("/proc/pressure/cpu").splitlines():
        kind, *entries = line.split()
        values = dict(entry.split("=", 1) for entry in entries if "=" in entry)
        if kind == "some" and "avg10" in values:
            return float(values["avg10"])
    raise UnreadableError("/proc/pressure/cpu has no line 'some avg10=...'")


def _steal(system: System) -> float:
    time = read_cpu_time(system)
    return time.steal / time.total
