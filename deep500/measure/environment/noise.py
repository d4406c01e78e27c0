"""Witnesses of noise: what disturbed a measurement, taken before and after it."""

from __future__ import annotations

import dataclasses
import os
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from deep500.measure.environment.control_groups import cpu_throttling
from deep500.measure.environment.cpu_time import CpuTime, read_cpu_time
from deep500.measure.environment.probe import UNAVAILABLE
from deep500.measure.environment.system import System, UnreadableError
from deep500.measure.environment.topology import current_frequencies_mhz

__all__ = ["MINIMUM_TICKS", "NoiseInterval", "NoiseWitness", "observe_noise", "take_witness"]

#: Shares of the CPU time are told from this many ticks on (a tick is 1/100 s of one CPU): then one tick is 2 %.
MINIMUM_TICKS = 50

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class NoiseInterval:
    """What happened between two witnesses. ``None`` stands for what could not be read; the reason is in ``reasons``.

    Attributes:
        elapsed_s: Time between them.
        own_cpu_s: CPU time of this process and of its children that have ended.
        involuntary_context_switches: How often the scheduler interrupted this process.
        voluntary_context_switches: How often it waited of its own accord.
        minor_faults: Pages that were mapped.
        major_faults: Pages that came from a disk.
        steal_share: Share of the CPU time that a hypervisor gave to others.
        others_share: Share of the CPU time that other processes here used.
        throttled: How often the control group's quota stopped the process.
        throttled_s: For how long, all CPUs together.
        load_1min: Load average at the end.
        frequency_mhz: Median over the CPUs, before and after.
        reasons: Why fields are ``None``.
    """

    elapsed_s: float
    own_cpu_s: float
    involuntary_context_switches: int
    voluntary_context_switches: int
    minor_faults: int
    major_faults: int
    steal_share: float | None = None
    others_share: float | None = None
    throttled: int | None = None
    throttled_s: float | None = None
    load_1min: float | None = None
    frequency_mhz: tuple[float, float] | None = None
    reasons: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON, with ``"unavailable"`` for what could not be read and ``reasons`` beside."""
        values = dataclasses.asdict(self)
        return {
            key: UNAVAILABLE if value is None else list(value) if isinstance(value, tuple) else value
            for key, value in values.items()
        }


@dataclass(frozen=True)
class NoiseWitness:
    """The counters of one moment; two of them give a :class:`NoiseInterval`. Made by :func:`take_witness`.

    Attributes:
        moment_ns: When it was taken, on the clock ``perf_counter_ns``.
        own_cpu_s: CPU time of this process and of its children that have ended.
        usage: Context switches and faults of this process with all its threads.
        cpu_time: Time of all CPUs.
        throttling: How often, and for how many seconds, the control group's quota stopped the process.
        load_1min: Load average.
        frequency_mhz: Median over the CPUs.
        reasons: Why fields are ``None``.
    """

    moment_ns: int
    own_cpu_s: float
    usage: dict[str, int]
    cpu_time: CpuTime | None
    throttling: tuple[int, float] | None
    load_1min: float | None
    frequency_mhz: float | None
    reasons: dict[str, str] = field(default_factory=dict)

    def since(self, earlier: NoiseWitness) -> NoiseInterval:
        """Return what happened after an earlier witness.

        Shares of the CPU time are ``None`` where less than :data:`MINIMUM_TICKS` ticks passed.
        """
        reasons = {**earlier.reasons, **self.reasons}
        steal = others = throttled = throttled_s = frequency = None
        own = self.own_cpu_s - earlier.own_cpu_s
        if self.cpu_time is not None and earlier.cpu_time is not None:
            total = self.cpu_time.total - earlier.cpu_time.total
            if total >= MINIMUM_TICKS:
                steal = max(0.0, (self.cpu_time.steal - earlier.cpu_time.steal) / total)
                busy = self.cpu_time.busy - earlier.cpu_time.busy - own * os.sysconf("SC_CLK_TCK")
                others = min(1.0, max(0.0, busy / total))
            else:
                text = f"only {total} ticks of CPU time passed, fewer than {MINIMUM_TICKS}"
                reasons.update(steal_share=text, others_share=text)
        if self.throttling is not None and earlier.throttling is not None:
            throttled = self.throttling[0] - earlier.throttling[0]
            throttled_s = self.throttling[1] - earlier.throttling[1]
        if self.frequency_mhz is not None and earlier.frequency_mhz is not None:
            frequency = (earlier.frequency_mhz, self.frequency_mhz)
        return NoiseInterval(
            elapsed_s=(self.moment_ns - earlier.moment_ns) / 1e9,
            own_cpu_s=own,
            **{name: count - earlier.usage[name] for name, count in self.usage.items()},
            steal_share=steal,
            others_share=others,
            throttled=throttled,
            throttled_s=throttled_s,
            load_1min=self.load_1min,
            frequency_mhz=frequency,
            reasons=reasons,
        )


def take_witness(system: System | None = None) -> NoiseWitness:
    """Note the counters of this moment.

    It costs tenths of a millisecond, more on machines with many CPUs, so it belongs beside a series of samples, not
    between single short ones.

    Args:
        system: Where to read from; by default this machine.
    """
    system = system or System()
    reasons: dict[str, str] = {}
    return NoiseWitness(
        **_own_usage(),
        cpu_time=_attempt(lambda: read_cpu_time(system), reasons, "steal_share", "others_share"),
        throttling=_attempt(lambda: cpu_throttling(system), reasons, "throttled", "throttled_s"),
        load_1min=_attempt(lambda: _load(system), reasons, "load_1min"),
        frequency_mhz=_attempt(lambda: statistics.median(current_frequencies_mhz(system)), reasons, "frequency_mhz"),
        reasons=reasons,
    )


def observe_noise(duration_s: float = 0.5, system: System | None = None) -> NoiseInterval:
    """Wait, and return what happened meanwhile: with this process asleep, all that happened is noise.

    Args:
        duration_s: How long to wait.
        system: Where to read from; by default this machine.
    """
    earlier = take_witness(system)
    time.sleep(duration_s)
    return take_witness(system).since(earlier)


def _own_usage() -> dict[str, Any]:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "moment_ns": time.perf_counter_ns(),
        "own_cpu_s": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        "usage": {
            "involuntary_context_switches": own.ru_nivcsw,
            "voluntary_context_switches": own.ru_nvcsw,
            "minor_faults": own.ru_minflt,
            "major_faults": own.ru_majflt,
        },
    }


def _load(system: System) -> float:
    words = system.read("/proc/loadavg").split()
    if not words:
        raise UnreadableError("/proc/loadavg is empty")
    return float(words[0])


def _attempt(read: Callable[[], _Value], reasons: dict[str, str], *names: str) -> _Value | None:
    """Return what is read; where that fails, ``None`` and the reason under the names of the fields it would fill."""
    try:
        return read()
    except UnreadableError as error:
        text = str(error)
    except (ArithmeticError, ValueError) as error:  # a file of the kernel holds what it never should
        text = f"{type(error).__name__}: {error}"
    reasons.update(dict.fromkeys(names, text))
    return None
