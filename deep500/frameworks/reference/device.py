"""Where NumPy keeps its arrays."""

from __future__ import annotations

from deep500.core.device import CPUDevice, Device
from deep500.core.errors import DeviceError

__all__ = ["check_device"]


def check_device(device: Device) -> None:
    """Check that the device is the processor.

    Raises:
        DeviceError: It is not.
    """
    if not isinstance(device, CPUDevice):
        raise DeviceError(f"Device {device} was asked for; the NumPy reference runs on the cpu only.")
