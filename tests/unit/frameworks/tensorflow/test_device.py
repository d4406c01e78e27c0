from __future__ import annotations

import pytest
import tensorflow as tf

from deep500.core.device import CPUDevice, GPUDevice
from deep500.core.errors import DeviceError
from deep500.frameworks.tensorflow import from_model
from deep500.frameworks.tensorflow.device import device_name, synchronize
from deep500.networks.creation import create_model


def test_processor() -> None:
    assert device_name(CPUDevice()) == "/CPU:0"
    synchronize(CPUDevice())


def test_missing_gpu() -> None:
    missing = len(tf.config.list_logical_devices("GPU"))
    with pytest.raises(DeviceError, match=rf"'gpu:{missing}' was asked for, and TensorFlow finds: cpu.*use 'cpu'"):
        device_name(GPUDevice(missing))
    with pytest.raises(DeviceError, match="was asked for"):
        from_model(create_model("mlp", shape=(1, 2, 2)), device=f"gpu:{missing}")


def test_tensors_are_on_the_device() -> None:
    executor = from_model(create_model("mlp", shape=(1, 2, 2)), device="cpu")
    assert executor.stored_tensor("layers.0.weight").device.endswith("CPU:0")
    executor.synchronize()
