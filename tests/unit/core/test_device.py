from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deep500.core.device import CPUDevice, Device, GPUDevice, parse_device
from deep500.core.errors import Deep500Error, DeviceError


@pytest.mark.parametrize(
    ("name", "device"),
    [
        (None, CPUDevice()),
        ("cpu", CPUDevice()),
        (" CPU ", CPUDevice()),
        ("gpu", GPUDevice(0)),
        ("cuda", GPUDevice(0)),
        ("gpu:0", GPUDevice(0)),
        ("GPU:12", GPUDevice(12)),
        ("cuda:3", GPUDevice(3)),
        (GPUDevice(2), GPUDevice(2)),
        (CPUDevice(), CPUDevice()),
    ],
)
def test_names_of_devices(name: Any, device: Device) -> None:
    assert parse_device(name) == device


@pytest.mark.parametrize(
    "name",
    ["", "cpu:", "cpu:0", "gpu:", "gpu:-1", "gpu:x", "gpu:1.0", "gpu:1_0", "gpu:٣", "gpu 1", "tpu", 0, b"cpu", ["cpu"]],
)
def test_what_is_no_device_is_refused(name: Any) -> None:
    with pytest.raises(DeviceError, match=r"is not a device\. Accepted are 'cpu', 'gpu' and 'gpu:N'"):
        parse_device(name)


@given(st.text(max_size=6) | st.from_regex(r"(cpu|gpu|cuda):?.*"))
@example("gpu:" + "9" * 5000)
def test_a_name_is_a_device_or_refused(name: str) -> None:
    with contextlib.suppress(Deep500Error):
        assert parse_device(str(parse_device(name))) == parse_device(name)


@given(st.integers(0, 10**6))
def test_str_is_the_name(index: int) -> None:
    assert parse_device(str(GPUDevice(index))) == GPUDevice(index)
    assert str(CPUDevice()) == "cpu"


@pytest.mark.parametrize("index", [-1, True, 1.0, "0", None, np.int64(1)])
def test_what_is_no_index_is_refused(index: Any) -> None:
    with pytest.raises(DeviceError, match="is not the number of a GPU"):
        GPUDevice(index)
