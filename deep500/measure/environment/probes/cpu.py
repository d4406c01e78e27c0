"""The processors: model, flags, topology, caches, frequencies."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable
from typing import Any

from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError, cpu_list, format_cpus
from deep500.measure.environment.topology import CPU_FOLDER, current_frequencies_mhz, read_topology

__all__ = ["cpu"]

_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


def cpu(system: System) -> dict[str, Field]:
    """Tell which processors there are, what they can do and how their speed is governed."""
    cpuinfo = functools.cache(lambda: system.read_table("/proc/cpuinfo", ":"))
    topology = functools.cache(lambda: read_topology(system))
    return {
        "model": Field("string", "Model name, as the kernel has it.", lambda: _model(cpuinfo())),
        "vendor": Field("string", "Vendor.", lambda: _entry(cpuinfo(), "vendor_id", "CPU implementer")),
        "family": Field("string", "Family, model and stepping.", lambda: _family(cpuinfo())),
        "flags": Field(
            "array", "Raw feature flags, sorted.", lambda: sorted(_entry(cpuinfo(), "flags", "Features").split())
        ),
        "microcode": Field("string", "Revision of the microcode.", lambda: _entry(cpuinfo(), "microcode")),
        "sockets": Field("integer", "Packages.", lambda: topology().sockets),
        "cores": Field("integer", "Physical cores that are online.", lambda: len(topology().cores)),
        "threads": Field("integer", "Hardware threads that are online.", lambda: topology().threads),
        "smt_active": Field(
            "boolean", "Whether a core runs several threads.", lambda: topology().threads > len(topology().cores)
        ),
        "smt_control": Field(
            "string", "The kernel's switch for SMT.", lambda: system.read(f"{CPU_FOLDER}/smt/control")
        ),
        "core_threads": Field(
            "array", "The threads of each core, as a list of CPUs.", lambda: [*map(format_cpus, topology().cores)]
        ),
        "isolated": Field(
            "string", "CPUs that the scheduler leaves alone.", lambda: system.read(f"{CPU_FOLDER}/isolated")
        ),
        "caches": Field("array", "Caches: level, type, size_bytes, and how many there are.", lambda: _caches(system)),
        "numa_nodes": Field("array", "NUMA nodes: node, cpus, memory_bytes.", lambda: _numa_nodes(system)),
        "governor": Field("array", "Frequency governors in use.", lambda: _policies(system, "scaling_governor")),
        "frequency_driver": Field("array", "Drivers of the frequency.", lambda: _policies(system, "scaling_driver")),
        "frequency_current_mhz": Field(
            "object", "Least, median and most at this moment.", lambda: _spread(current_frequencies_mhz(system))
        ),
        "frequency_min_mhz": Field(
            "number", "Least that is allowed.", lambda: min(map(_mhz, _policies(system, "scaling_min_freq")))
        ),
        "frequency_max_mhz": Field(
            "number", "Most that is allowed.", lambda: max(map(_mhz, _policies(system, "scaling_max_freq")))
        ),
        "turbo": Field("boolean", "Whether the frequency may exceed the nominal one.", lambda: _turbo(system)),
        "vulnerabilities": Field("object", "Mitigations that the kernel applies.", lambda: _vulnerabilities(system)),
    }


def _entry(cpuinfo: dict[str, str], *keys: str) -> str:
    for key in keys:
        if cpuinfo.get(key):
            return cpuinfo[key]
    raise UnreadableError(f"/proc/cpuinfo has no entry {' or '.join(map(repr, keys))}")


def _model(cpuinfo: dict[str, str]) -> str:
    if "CPU part" in cpuinfo and "model name" not in cpuinfo:  # ARM has numbers in the place of a name
        return f"ARM implementer {_entry(cpuinfo, 'CPU implementer')} part {cpuinfo['CPU part']}"
    return _entry(cpuinfo, "model name", "cpu model", "cpu", "Processor")


def _family(cpuinfo: dict[str, str]) -> str:
    family = _entry(cpuinfo, "cpu family", "CPU architecture")
    model = _entry(cpuinfo, "model", "CPU variant")
    return f"{family}/{model}/{_entry(cpuinfo, 'stepping', 'CPU revision')}"


def _caches(system: System) -> list[dict[str, Any]]:
    counted: dict[tuple[int, str, int], set[str]] = {}
    for folder in system.paths(f"{CPU_FOLDER}/cpu[0-9]*/cache/index[0-9]*"):
        key = (
            system.read_integer(f"{folder}/level"),
            system.read(f"{folder}/type"),
            _bytes(system.read(f"{folder}/size")),
        )
        counted.setdefault(key, set()).add(system.read(f"{folder}/shared_cpu_list"))
    if not counted:
        raise UnreadableError(f"{CPU_FOLDER}/cpu*/cache: no such folder")
    return [
        {"level": level, "type": kind, "size_bytes": size, "count": len(places)}
        for (level, kind, size), places in sorted(counted.items())
    ]


def _bytes(text: str) -> int:
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    if not number.isdigit():
        raise UnreadableError(f"{text[:60]!r} is not a size such as '32K'")
    return int(number) * unit


def _numa_nodes(system: System) -> list[dict[str, Any]]:
    nodes = []
    for folder in system.paths("/sys/devices/system/node/node[0-9]*"):
        total = next((line for line in system.read(f"{folder}/meminfo").splitlines() if "MemTotal:" in line), "")
        kilobytes = total.partition("MemTotal:")[2].split()
        nodes.append(
            {
                "node": int(folder.rpartition("node")[2]),
                "cpus": format_cpus(cpu_list(system.read(f"{folder}/cpulist"))),
                "memory_bytes": int(kilobytes[0]) * 1024 if kilobytes else None,
            }
        )
    if not nodes:
        raise UnreadableError("/sys/devices/system/node: no such folder")
    return nodes


def _policies(system: System, name: str) -> list[str]:
    files = system.paths(f"{CPU_FOLDER}/cpufreq/policy*/{name}")
    if not files:
        raise UnreadableError(f"{CPU_FOLDER}/cpufreq: no policy; virtual machines often have none")
    return sorted({system.read(file) for file in files})


def _mhz(kilohertz: str) -> float:
    if not kilohertz.isdigit():
        raise UnreadableError(f"{kilohertz[:60]!r} is not a frequency in kHz")
    return int(kilohertz) / 1000


def _spread(values: Iterable[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"least": ordered[0], "median": statistics.median(ordered), "most": ordered[-1]}


def _turbo(system: System) -> bool:
    no_turbo, boost = f"{CPU_FOLDER}/intel_pstate/no_turbo", f"{CPU_FOLDER}/cpufreq/boost"
    if system.exists(no_turbo):
        return system.read_integer(no_turbo) == 0
    if system.exists(boost):
        return system.read_integer(boost) == 1
    raise UnreadableError(f"neither {no_turbo} nor {boost} exists")


def _vulnerabilities(system: System) -> dict[str, str]:
    files = system.paths(f"{CPU_FOLDER}/vulnerabilities/*")
    if not files:
        raise UnreadableError(f"{CPU_FOLDER}/vulnerabilities: no such folder")
    return {file.rpartition("/")[2]: system.read(file) for file in files}
