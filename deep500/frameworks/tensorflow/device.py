"""Deep500's devices as TensorFlow names them."""

from __future__ import annotations

import tensorflow as tf

from deep500.core.device import CPUDevice, Device
from deep500.core.errors import DeviceError

__all__ = ["device_name", "synchronize"]


def device_name(device: Device) -> str:
    """Return TensorFlow's name of a device, for ``tf.device``.

    Args:
        device: The processor or one of its GPUs.

    Raises:
        DeviceError: TensorFlow does not find the GPU.
    """
    if isinstance(device, CPUDevice):
        return "/CPU:0"
    found = tf.config.list_logical_devices("GPU")
    if device.index < len(found):
        return f"/GPU:{device.index}"
    built = tf.test.is_built_with_cuda() or tf.test.is_built_with_rocm()
    advice = (
        "Check the driver (nvidia-smi) and CUDA_VISIBLE_DEVICES"
        if built
        else "This TensorFlow is built without GPU support; install 'tensorflow[and-cuda]' in place of it"
    )
    exist = ", ".join(["cpu", *(f"gpu:{index}" for index in range(len(found)))])
    raise DeviceError(
        f"The device {str(device)!r} was asked for, and TensorFlow finds: {exist}. {advice}, or use 'cpu'."
    )


def synchronize(device: Device) -> None:
    """Wait until a device has finished what was asked of it.

    On the processor TensorFlow returns when an operation is done, so there is nothing to wait for.
    """
    if not isinstance(device, CPUDevice):
        tf.test.experimental.sync_devices()
