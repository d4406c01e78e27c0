"""What the kernel tells about the CPUs: which there are, which share a core, and how fast they run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deep500.measure.environment.system import System, UnreadableError, cpu_list

__all__ = ["CPU_FOLDER", "Topology", "current_frequencies_mhz", "read_topology"]

#: Where the kernel describes the CPUs.
CPU_FOLDER = "/sys/devices/system/cpu"


@dataclass(frozen=True)
class Topology:
    """The CPUs that are online.

    Attributes:
        sockets: Number of packages.
        cores: The hardware threads of each core: ``[[0, 64], [1, 65], ...]``.
    """

    sockets: int
    cores: list[list[int]]

    @property
    def threads(self) -> int:
        """Number of hardware threads, each of which is a CPU to the kernel."""
        return sum(map(len, self.cores))


def read_topology(system: System) -> Topology:
    """Return the CPUs from ``/sys``, or from ``/proc/cpuinfo`` where that has no topology.

    Raises:
        UnreadableError: Neither tells it.
    """
    folders = system.paths(f"{CPU_FOLDER}/cpu[0-9]*/topology")
    if not folders:
        return _topology_of_cpuinfo(system)
    cores: dict[tuple[int, ...], None] = {}
    packages = set()
    for folder in folders:
        cores[tuple(cpu_list(system.read(f"{folder}/thread_siblings_list")))] = None
        packages.add(system.read_integer(f"{folder}/physical_package_id"))
    return Topology(len(packages), [list(threads) for threads in cores])


def _topology_of_cpuinfo(system: System) -> Topology:
    cores: dict[tuple[str, str], list[int]] = {}
    for block in system.read("/proc/cpuinfo").split("\n\n"):
        entries = dict(re.findall(r"^(processor|physical id|core id)\s*:\s*(\d+)", block, re.MULTILINE))
        if entries.keys() == {"processor", "physical id", "core id"}:
            place = (entries["physical id"], entries["core id"])
            cores.setdefault(place, []).append(int(entries["processor"]))
    if not cores:
        raise UnreadableError(f"neither {CPU_FOLDER}/cpu*/topology nor /proc/cpuinfo tells which CPUs share a core")
    return Topology(len({package for package, _ in cores}), list(cores.values()))


def current_frequencies_mhz(system: System) -> list[float]:
    """Return the present frequency of each frequency domain, or of each CPU where only ``/proc/cpuinfo`` tells it.

    In a virtual machine the latter is often a constant.

    Raises:
        UnreadableError: Neither tells it.
    """
    files = system.paths(f"{CPU_FOLDER}/cpufreq/policy*/scaling_cur_freq")
    if files:
        return [system.read_integer(file) / 1000 for file in files]
    found = re.findall(r"^cpu MHz\s*:\s*([0-9.]+)\s*$", system.read("/proc/cpuinfo"), re.MULTILINE)
    if not found:
        raise UnreadableError(f"neither {CPU_FOLDER}/cpufreq nor /proc/cpuinfo tells the frequency")
    return [float(text) for text in found]
