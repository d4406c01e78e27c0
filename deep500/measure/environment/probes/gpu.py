"""GPUs of NVIDIA, asked for without a framework."""

from __future__ import annotations

import csv
import functools
from typing import Any

from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError

__all__ = ["gpu"]

_DRIVER = "/proc/driver/nvidia"

#: What nvidia-smi is asked, and the name and factor under which numbers are recorded.
_QUERIES: dict[str, tuple[str, int | None]] = {
    "name": ("name", None),
    "driver_version": ("driver_version", None),
    "vbios_version": ("vbios_version", None),
    "compute_cap": ("compute_capability", None),
    "memory.total": ("memory_total_bytes", 1024**2),
    "memory.used": ("memory_used_bytes", 1024**2),
    "clocks.sm": ("clock_sm_mhz", 1),
    "clocks.max.sm": ("clock_sm_max_mhz", 1),
    "clocks.mem": ("clock_memory_mhz", 1),
    "power.limit": ("power_limit_w", 1),
    "temperature.gpu": ("temperature_c", 1),
    "utilization.gpu": ("utilization_percent", 1),
    "pstate": ("performance_state", None),
    "persistence_mode": ("persistence_mode", None),
    "compute_mode": ("compute_mode", None),
    "ecc.mode.current": ("ecc", None),
    "mig.mode.current": ("mig", None),
}


def gpu(system: System) -> dict[str, Field]:
    """Tell which GPUs there are and in which state, as the driver and nvidia-smi know it."""
    devices = functools.cache(lambda: _devices(system))
    return {
        "models": Field("array", "Names of the GPUs, from the driver's files.", lambda: _models(system)),
        "kernel_driver": Field(
            "string", "Version of the driver.", lambda: system.read(f"{_DRIVER}/version").partition("\n")[0]
        ),
        "devices": Field(
            "array", "Each GPU's memory, clocks, limits and modes, from nvidia-smi; null: not supported.", devices
        ),
    }


def _models(system: System) -> list[str]:
    files = system.paths(f"{_DRIVER}/gpus/*/information")
    if not files:
        raise UnreadableError(f"{_DRIVER}/gpus: no such folder, so no driver of NVIDIA is loaded")
    return [system.read_table(file, ":").get("Model", "unknown") for file in files]


def _devices(system: System) -> list[dict[str, Any]]:
    output = system.run("nvidia-smi", f"--query-gpu={','.join(_QUERIES)}", "--format=csv,noheader,nounits")
    rows = [row for row in csv.reader(output.splitlines(), skipinitialspace=True) if row]
    if any(len(row) != len(_QUERIES) for row in rows):
        raise UnreadableError(f"nvidia-smi answered {output[:80]!r}, not {len(_QUERIES)} values for each GPU")
    return [{name: _value(text, factor) for text, (name, factor) in zip(row, _QUERIES.values())} for row in rows]


def _value(text: str, factor: int | None) -> str | float | None:
    """Return a value; the tool writes ``[N/A]`` or ``[Not Supported]`` where a GPU does not tell."""
    if text.startswith("[") or text == "N/A":
        return None
    if factor is None:
        return text
    number = float(text) * factor
    return int(number) if number.is_integer() else number
