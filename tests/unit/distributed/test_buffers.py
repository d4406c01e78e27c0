from __future__ import annotations

import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.buffers import DTYPES, host_view


class Exporter:
    """A tensor of another library: what NumPy exports, under another class."""

    def __init__(self, array: np.ndarray, versioned: bool = False) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.array.__dlpack__(**({"max_version": (1, 0)} if self.versioned else {}))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Interface:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.array.__array_interface__


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "uint32", "int64"])
def test_memory_is_seen_in_place(dtype: str, versioned: bool) -> None:
    array = np.arange(10).astype(dtype)
    for buffer in (array, Exporter(array, versioned), Interface(array)):
        view = host_view(buffer)
        view[3] += 7
        assert view.dtype == array.dtype
        assert np.shares_memory(view, array)
    assert array[3] == 24


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_arrays_are_themselves(dtype: str) -> None:
    array = np.zeros(3, getattr(ml_dtypes, dtype, dtype))

    assert host_view(array) is array


def test_view_keeps_the_memory() -> None:
    view = host_view(Exporter(np.full(1_000_000, 3.0)))
    gc.collect()

    assert (view == 3.0).all()


def test_part_of_a_tensor() -> None:
    array = np.arange(10.0)
    view = host_view(Exporter(array[4:8]))
    view[:] = -1

    assert array.tolist() == [0, 1, 2, 3, -1, -1, -1, -1, 8, 9]


def test_empty() -> None:
    assert host_view(Exporter(np.zeros(0, np.float32))).shape == (0,)


def test_read_only_tensor_is_refused() -> None:
    array = np.zeros(4)
    array.flags.writeable = False

    with pytest.raises(CommunicationError, match="is read-only"):
        host_view(Exporter(array, versioned=True))


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\)"),
        (np.zeros((2, 3)).T, r"shape \(3, 2\)"),
        (np.zeros(10)[::2], "not contiguous"),
        (np.zeros(10)[::-1], "backwards"),
        (np.zeros(3, np.complex64), "dtype complex64"),
        (np.zeros(3, bool), "dtype bool"),
    ],
)
def test_tensors_that_are_refused(array: np.ndarray, reason: str) -> None:
    with pytest.raises(CommunicationError, match=reason):
        host_view(Exporter(array))


@pytest.mark.parametrize("thing", [None, 1.0, "text", [1.0], object()])
def test_what_is_no_tensor_is_refused(thing: Any) -> None:
    with pytest.raises(CommunicationError, match="make a NumPy array of it"):
        host_view(thing)


def test_bfloat16_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6, dtype=torch.bfloat16)
    host_view(tensor)[2] = 9

    assert tensor.tolist() == [0, 1, 9, 3, 4, 5]
