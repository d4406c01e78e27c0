from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import DeviceError
from deep500.frameworks.reference import backend
from tests.unit.networks.support import relu_model


def test_devices_are_onnx_names() -> None:
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
    assert not backend.supports_device("TPU")


@pytest.mark.parametrize("device", ["TPU", "gpu:0", "", 3, None])
def test_other_devices_are_refused_by_their_name(device: Any) -> None:
    with pytest.raises(DeviceError, match=rf"^{device!r} is not a device. Accepted are 'CPU', 'CUDA'"):
        backend.prepare(relu_model("batch", 2), device)
