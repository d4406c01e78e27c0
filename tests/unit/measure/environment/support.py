"""A made-up machine: two sockets of two cores with two threads each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deep500.measure.environment.probe import Section, read_section
from deep500.measure.environment.system import System

CPU = "/sys/devices/system/cpu"

STATUS = """Name:\tpython
Threads:\t3
VmSwap:\t       8 kB
Cpus_allowed_list:\t0-3,6
"""
STAT = "7 (a) (b) R 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 5 3 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 3 0 0"
MEMINFO = """MemTotal:       16000 kB
MemAvailable:    9000 kB
SwapTotal:       4000 kB
SwapFree:        3000 kB
HugePages_Total:       2
"""


def write(root: Path, path: str, text: object) -> None:
    """Write a file below the root."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"{text}\n")


def machine(root: Path, *, cpus: int = 8, **environment: str) -> System:
    """Write the files of a machine; CPU n and n + 4 share a core, and cores 2 and 3 are on the second socket."""
    blocks = []
    for cpu in range(cpus):
        socket, core = cpu % 4 // 2, cpu % 4
        blocks.append(
            f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
            f"model name\t: Made-up CPU @ 2.00GHz\nstepping\t: 7\nmicrocode\t: 0x5\ncpu MHz\t\t: {2000 + cpu}.5\n"
            f"physical id\t: {socket}\ncore id\t\t: {core % 2}\nflags\t\t: sse avx2 hypervisor\n"
        )
        folder = f"{CPU}/cpu{cpu}"
        siblings = f"{core},{core + 4}"
        write(root, f"{folder}/topology/thread_siblings_list", siblings)
        write(root, f"{folder}/topology/physical_package_id", socket)
        for index, (level, kind, size, shared) in enumerate(
            [(1, "Data", "32K", siblings), (3, "Unified", "16M", f"{socket * 2}-{socket * 2 + 1}")]
        ):
            write(root, f"{folder}/cache/index{index}/level", level)
            write(root, f"{folder}/cache/index{index}/type", kind)
            write(root, f"{folder}/cache/index{index}/size", size)
            write(root, f"{folder}/cache/index{index}/shared_cpu_list", shared)
        policy = f"{CPU}/cpufreq/policy{cpu}"
        write(root, f"{policy}/scaling_governor", "performance")
        write(root, f"{policy}/scaling_driver", "intel_cpufreq")
        write(root, f"{policy}/scaling_cur_freq", 2_000_000 + 1000 * cpu)
        write(root, f"{policy}/scaling_min_freq", 1_000_000)
        write(root, f"{policy}/scaling_max_freq", 3_000_000)
    write(root, "/proc/cpuinfo", "\n".join(blocks))
    write(root, f"{CPU}/smt/control", "on")
    write(root, f"{CPU}/isolated", "")
    write(root, f"{CPU}/intel_pstate/no_turbo", 1)
    write(root, f"{CPU}/vulnerabilities/meltdown", "Mitigation: PTI")
    for node in range(2):
        write(root, f"/sys/devices/system/node/node{node}/cpulist", f"{2 * node}-{2 * node + 1}")
        write(root, f"/sys/devices/system/node/node{node}/meminfo", f"Node {node} MemTotal:  8000 kB")
    write(root, "/proc/self/status", STATUS)
    write(root, "/proc/self/stat", STAT)
    write(root, "/proc/meminfo", MEMINFO)
    write(root, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
    write(root, "/proc/loadavg", "0.50 0.40 0.30 2/300 4242")
    write_cpu_time(root)
    return System(root, {"PATH": str(root / "bin"), **environment})


def write_cpu_time(root: Path, *, user: int = 500, idle: int = 400, steal: int = 100) -> None:
    """Write the time of all CPUs, in ticks."""
    write(root, "/proc/stat", f"cpu  {user} 0 0 {idle} 0 0 0 {steal} 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1")


def write_groups_v2(root: Path, *, quota: str = "150000 100000", memory: str = "1048576") -> None:
    """Put the process in a group of version 2, below one that has limits too."""
    write(root, "/proc/self/cgroup", "0::/job/task")
    write(root, "/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw")
    write(root, "/sys/fs/cgroup/job/cpu.max", "400000 100000")
    write(root, "/sys/fs/cgroup/job/memory.max", "max")
    write(root, "/sys/fs/cgroup/job/task/cpu.max", quota)
    write(root, "/sys/fs/cgroup/job/task/memory.max", memory)
    write(root, "/sys/fs/cgroup/job/task/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 2500000")


def write_groups_v1(root: Path, *, quota: int = 50000, memory: int = 2097152) -> None:
    """Put the process in groups of version 1, seen from inside a container."""
    write(root, "/proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/")
    write(
        root,
        "/proc/self/mountinfo",
        "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\nan unreadable line",
    )
    write(root, "/sys/fs/cgroup/unified/cpu.max", "1 1")
    write(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota)
    write(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", 100000)
    write(root, "/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 1500000000")
    write(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", memory)


def command(root: Path, name: str, script: str) -> None:
    """Write a command that the made-up machine finds on its PATH."""
    write(root, f"bin/{name}", f"#!/bin/sh\n{script}")
    (root / "bin" / name).chmod(0o755)


def values(name: str, system: System) -> dict[str, Any]:
    """Return the fields of one probe."""
    return read_section(name, system).values


def section(name: str, system: System) -> Section:
    """Return the section of one probe."""
    return read_section(name, system)
