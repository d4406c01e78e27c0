"""Where PyTorch keeps its tensors."""

from __future__ import annotations

import torch

from deep500.core.device import Device, GPUDevice
from deep500.core.errors import DeviceError

__all__ = ["torch_device"]


def torch_device(device: Device) -> torch.device:
    """Return PyTorch's device.

    Raises:
        DeviceError: PyTorch does not see the GPU.
    """
    if not isinstance(device, GPUDevice):
        return torch.device("cpu")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device.index >= count:
        build = "" if torch.version.cuda else " This build of PyTorch has no CUDA support."
        raise DeviceError(
            f"Device {device} was asked for; PyTorch sees {count} GPUs.{build} Use --device cpu, or device=CPUDevice()."
        )
    return torch.device("cuda", device.index)
