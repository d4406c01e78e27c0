"""The host: kernel, operating system, and what lies between it and the hardware."""

from __future__ import annotations

import hashlib
import platform
import shlex

from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError

__all__ = ["host"]

_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_CONTAINER_GROUPS = ("docker", "kubepods", "containerd", "lxc", "libpod", "slurm")
_IDENTITY = "/sys/class/dmi/id"


def host(system: System) -> dict[str, Field]:
    """Tell the kernel, the operating system, and whether this is a virtual machine or a container."""
    return {
        "hostname_hash": Field(
            "string",
            "First 16 hexadecimal digits of the SHA-256 of 'deep500:' and the host's name: equal for equal hosts.",
            lambda: hashlib.sha256(f"deep500:{platform.node()}".encode()).hexdigest()[:16],
        ),
        "kernel": Field("string", "Release of the kernel.", lambda: _known(platform.release(), "release")),
        "kernel_build": Field("string", "Build of the kernel.", lambda: _known(platform.version(), "build")),
        "architecture": Field("string", "Instruction set.", lambda: _known(platform.machine(), "architecture")),
        "operating_system": Field("string", "Distribution and its version.", lambda: _operating_system(system)),
        "libc": Field("string", "C library.", lambda: _known(" ".join(platform.libc_ver()).strip(), "C library")),
        "virtual_machine_hints": Field(
            "array", "Signs of a virtual machine; none is no proof.", lambda: _virtual_machine(system)
        ),
        "container_hints": Field("array", "Signs of a container; none is no proof.", lambda: _container(system)),
    }


def _known(text: str, what: str) -> str:
    if not text:
        raise UnreadableError(f"Python does not know the {what} of this platform")
    return text


def _operating_system(system: System) -> str:
    try:
        table = system.read_table("/etc/os-release", "=")
    except UnreadableError:
        if platform.system() == "Linux":
            raise
        return platform.platform()
    for key in ("PRETTY_NAME", "NAME"):
        if table.get(key):
            return " ".join(shlex.split(table[key]))
    raise UnreadableError("/etc/os-release names no distribution")


def _virtual_machine(system: System) -> list[str]:
    hints = []
    flags = system.read_table("/proc/cpuinfo", ":").get("flags", "").split()
    if "hypervisor" in flags:
        hints.append("CPU flag hypervisor")
    for path in ("/sys/hypervisor/type", f"{_IDENTITY}/sys_vendor", f"{_IDENTITY}/product_name"):
        if system.exists(path):
            hints.append(f"{path.rpartition('/')[2]} {system.read(path)}")
    if "microsoft" in platform.release().lower():
        hints.append("kernel of the Windows Subsystem for Linux")
    return hints


def _container(system: System) -> list[str]:
    hints = [path for path in _CONTAINER_FILES if system.exists(path)]
    groups = system.read("/proc/self/cgroup")
    hints += [f"control group of {name}" for name in _CONTAINER_GROUPS if name in groups]
    if "KUBERNETES_SERVICE_HOST" in system.environment:
        hints.append("variable KUBERNETES_SERVICE_HOST")
    return hints
