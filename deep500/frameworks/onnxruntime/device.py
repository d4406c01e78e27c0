"""Where ONNX Runtime computes."""

from __future__ import annotations

from typing import Any

import onnxruntime

from deep500.core.device import CPUDevice, Device, GPUDevice
from deep500.core.errors import DeviceError

__all__ = ["execution_providers"]

#: What ONNX Runtime calls its parts for the devices.
_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def execution_providers(device: Device) -> list[Any]:
    """Return the execution providers that a session for a device is made with.

    Raises:
        DeviceError: The installed ONNX Runtime has none for it.
    """
    if isinstance(device, CPUDevice):
        return [_CPU]
    available = onnxruntime.get_available_providers()
    if isinstance(device, GPUDevice) and _CUDA in available:
        return [(_CUDA, {"device_id": device.index}), _CPU]
    raise DeviceError(
        f"Device {device} was asked for; the installed ONNX Runtime {onnxruntime.__version__} has only "
        f"{', '.join(available)}. For NVIDIA's GPUs, install onnxruntime-gpu instead of onnxruntime."
    )
