"""How the CPUs spent their time, as the kernel counts it in ticks of 1/100 s."""

from __future__ import annotations

from dataclasses import dataclass

from deep500.measure.environment.system import System, UnreadableError

__all__ = ["CpuTime", "read_cpu_time"]


@dataclass(frozen=True)
class CpuTime:
    """Time of all CPUs together since the machine's start, in ticks.

    Attributes:
        total: All time.
        idle: Nothing to do, or waiting for a disk.
        steal: A hypervisor gave the CPU to others.
    """

    total: int
    idle: int
    steal: int

    @property
    def busy(self) -> int:
        """Time in which something ran here."""
        return self.total - self.idle - self.steal


def read_cpu_time(system: System) -> CpuTime:
    """Return the first line of ``/proc/stat``.

    Raises:
        UnreadableError: It is not there or has another form.
    """
    words = system.read("/proc/stat").partition("\n")[0].split()
    # user nice system idle iowait irq softirq steal; guests' time, which follows, is part of user and nice.
    ticks = words[1:9]
    if words[:1] != ["cpu"] or len(ticks) < 8 or not all(word.isdigit() for word in ticks):
        raise UnreadableError(f"/proc/stat starts with {' '.join(words)[:60]!r}, not with the time of all CPUs")
    counts = [int(word) for word in ticks]
    if not sum(counts):
        raise UnreadableError("/proc/stat counts no time at all")
    return CpuTime(total=sum(counts), idle=counts[3] + counts[4], steal=counts[7])
