"""Whether there is a GPU that CUDA can use, found out without a framework."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

__all__ = ["cuda_device_count"]

#: What NVIDIA's driver puts there; the last one under Windows' Linux.
_DEVICE_FILES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl")

#: Libraries of the driver that count devices: names of the library, of what starts it, and of what counts. NVIDIA's
#: management library comes first, for a process in which CUDA itself was started must not fork and go on to use it.
_COUNTERS = (
    ("libnvidia-ml.so.1", "nvmlInit_v2", "nvmlDeviceGetCount_v2"),
    ("libcuda.so.1", "cuInit", "cuDeviceGetCount"),
)


@cache
def cuda_device_count() -> int:
    """Return how many GPUs CUDA can use: 0 without a driver, or where ``CUDA_VISIBLE_DEVICES`` hides all of them.

    It is found out once a process, in less than a millisecond where there is no GPU.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and (not visible.strip() or visible.strip().startswith("-")):
        return 0
    if not any(Path(file).exists() for file in _DEVICE_FILES):
        return 0
    return next((count for counter in _COUNTERS if (count := _counted(*counter)) is not None), 0)


def _counted(library: str, start: str, count: str) -> int | None:
    """Return what a library of the driver counts; ``None`` where it is not there or fails."""
    try:
        loaded = ctypes.CDLL(library)
        arguments = (ctypes.c_uint(0),) if start == "cuInit" else ()
        number = ctypes.c_uint(0)
        if getattr(loaded, start)(*arguments) != 0 or getattr(loaded, count)(ctypes.byref(number)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return int(number.value)
