"""Where a network runs: the host's processor, or one of its GPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from deep500.core.errors import DeviceError

__all__ = ["CPUDevice", "Device", "GPUDevice", "parse_device"]


@dataclass(frozen=True)
class CPUDevice:
    """The host's processor, all cores that the process may use."""

    def __str__(self) -> str:
        """Return the name that the command line accepts."""
        return "cpu"


@dataclass(frozen=True)
class GPUDevice:
    """One GPU.

    Attributes:
        index: Number of the GPU among those that the process sees, from 0.
    """

    index: int = 0

    def __post_init__(self) -> None:
        """Check the index."""
        if isinstance(self.index, bool) or not isinstance(self.index, int) or self.index < 0:
            raise DeviceError(f"{self.index!r} is not the number of a GPU. Accepted are whole numbers from 0.")

    def __str__(self) -> str:
        """Return the name that the command line accepts."""
        return f"gpu:{self.index}"


Device: TypeAlias = CPUDevice | GPUDevice


def parse_device(device: str | Device | None) -> Device:
    """Return the device that a name such as ``"cpu"``, ``"gpu"`` or ``"gpu:1"`` stands for.

    Args:
        device: A name, a device, or ``None`` for the processor.

    Raises:
        DeviceError: The name is none of these.
    """
    if device is None:
        return CPUDevice()
    if isinstance(device, (CPUDevice, GPUDevice)):
        return device
    if isinstance(device, str):
        name = re.fullmatch(r"(cpu)|(?:gpu|cuda)(?::([0-9]{1,9}))?", device.strip().lower())
        if name:
            return CPUDevice() if name[1] else GPUDevice(int(name[2] or 0))
    raise DeviceError(f"{device!r} is not a device. Accepted are 'cpu', 'gpu' and 'gpu:N' with N from 0.")
