"""Flat buffers: views, buckets in reverse order, nothing left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.distributed.flat_buffers import FlatBuffers

DESCRIPTORS = {
    "kernel": TensorDescriptor("float32", (4, 2, 3, 3)),
    "scale": TensorDescriptor("float64", ()),
    "bias": TensorDescriptor("float32", (4,)),
    "nothing": TensorDescriptor("float32", (0, 3)),
    "weight": TensorDescriptor("float32", (5, 4)),
}


def test_views_share_the_memory_of_their_buffer() -> None:
    buffers = FlatBuffers(DESCRIPTORS)
    for number, name in enumerate(buffers.names, start=1):
        buffers[name][...] = number
    single, double = buffers
    assert (single.dtype, double.dtype) == ("float32", "float64")
    assert list(single.views) == ["kernel", "bias", "nothing", "weight"]
    assert single.array.tolist() == [1.0] * 72 + [2.0] * 4 + [4.0] * 20
    assert double.array.tolist() == [5.0]
    assert {name: buffers[name].shape for name in DESCRIPTORS} == {n: d.shape for n, d in DESCRIPTORS.items()}
    assert buffers.size_bytes == 4 * 96 + 8


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(1, 400))
def test_buckets_hold_every_tensor_once_in_reverse_order(sizes: list[int], size_bytes: int) -> None:
    buffers = FlatBuffers({f"p{i}": TensorDescriptor("float32", (size,)) for i, size in enumerate(sizes)})
    buckets = buffers.buckets(size_bytes)
    names = [name for bucket in buckets for name in reversed(bucket.names)]
    assert names == [f"p{i}" for i in reversed(range(len(sizes)))]
    (buffer,) = buffers
    for bucket in buckets:
        assert bucket.array.base is not None
        assert np.shares_memory(bucket.array, buffer.array) or not bucket.array.size
        assert bucket.array.size == sum(buffers[name].size for name in bucket.names)
        assert bucket.start == buffer.starts[bucket.names[0]]
        assert len(bucket.names) == 1 or bucket.array.nbytes <= size_bytes


def test_an_array_is_set_in_its_own_memory() -> None:
    (buffer, _) = FlatBuffers(DESCRIPTORS)
    bucket = buffer.buckets(1)[0]
    bucket.array += 3
    bucket.array /= 2
    assert (buffer.views["weight"] == 1.5).all()
    bucket.array = np.zeros(20)
    assert (buffer.views["weight"] == 0).all()


def test_a_tensor_of_unknown_size_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'x' is float32\[n, 3\]; accepted are tensors of known size"):
        FlatBuffers({"x": TensorDescriptor("float32", ("n", 3))})
