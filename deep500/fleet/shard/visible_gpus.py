"""How many GPUs this process may use, told without importing a framework."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["VISIBILITY_VARIABLES", "GivenGpus", "visible_gpus"]

#: Lists of devices that the runtimes of GPUs go by, in the order in which they are asked.
VISIBILITY_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

#: What AMD's kernel driver tells of the processors that it knows; GPUs are those with SIMD units.
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")

_TIMEOUT_S = 20


@dataclass(frozen=True)
class GivenGpus:
    """GPUs that tests may use.

    Attributes:
        count: How many.
        source: What says so: a variable, a tool, an option.
        names: What each is called in a variable such as ``CUDA_VISIBLE_DEVICES``.
    """

    count: int
    source: str
    names: tuple[str, ...]


def visible_gpus(environment: Mapping[str, str] | None = None) -> GivenGpus:
    """Return the GPUs that this process may use.

    A variable that limits them counts: ``CUDA_VISIBLE_DEVICES``, then ``HIP_VISIBLE_DEVICES``, then
    ``ROCR_VISIBLE_DEVICES``; as in CUDA, nothing counts from the first entry on that is no device (``-1``, or one that
    was there before). Where none is set, it is as many as ``nvidia-smi -L`` lists, else as AMD's kernel driver knows,
    else none. Whether the devices that a variable names exist is not looked at.

    Args:
        environment: The variables; by default those of the process.
    """
    variables = os.environ if environment is None else environment
    for name in VISIBILITY_VARIABLES:
        if name in variables:
            entries = _entries(variables[name])
            return GivenGpus(len(entries), name, entries)
    listed = _listed_by_nvidia()
    if listed is not None:
        return _numbered(listed, "nvidia-smi")
    known = _known_to_amd()
    if known is not None:
        return _numbered(known, "the kernel's list of AMD GPUs")
    return GivenGpus(0, "neither a variable, nor nvidia-smi, nor the kernel names a GPU", ())


def _numbered(count: int, source: str) -> GivenGpus:
    return GivenGpus(count, source, tuple(map(str, range(count))))


def _entries(text: str) -> tuple[str, ...]:
    entries: list[str] = []
    for entry in (part.strip() for part in text.split(",")):
        is_device = entry.isdecimal() or entry.lower().startswith(("gpu-", "mig-"))
        if not is_device or entry in entries:
            break
        entries.append(entry)
    return tuple(entries)


def _listed_by_nvidia() -> int | None:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    try:
        said = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return sum(line.startswith("GPU ") for line in said.stdout.splitlines()) if said.returncode == 0 else None


def _known_to_amd() -> int | None:
    if not _KFD_NODES.is_dir():
        return None
    count = 0
    for properties in _KFD_NODES.glob("*/properties"):
        with contextlib.suppress(OSError):  # a node of another container cannot be read, and is not ours
            words = dict(line.split()[:2] for line in properties.read_text().splitlines() if len(line.split()) > 1)
            count += words.get("simd_count", "0") != "0"
    return count
