"""Arrays and tensors, there and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

torch = pytest.importorskip("torch")

from deep500.core.errors import InvalidInputError  # noqa: E402
from deep500.frameworks.pytorch._arrays import element_type, mark, to_array, to_tensor  # noqa: E402

DTYPES = [np.dtype(d) for d in ("?", "i1", "u2", "<i4", ">i8", "f2", ">f4", "f8", "c8", "c16")]
DTYPES += [np.dtype(d) for d in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)]


@st.composite
def arrays(draw: Any) -> Any:
    """Return an array of any dtype and order of bytes, with steps in any direction, perhaps not to be written to."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(draw(st.sampled_from(DTYPES)))
    steps = tuple(slice(None, None, draw(st.sampled_from([1, 2, -1]))) for _ in shape)
    array = array[steps].T if shape else array
    array.flags.writeable = draw(st.booleans())
    return array


@given(arrays())
def test_there_and_back(array: Any) -> None:
    tensor = to_tensor(array)
    back = to_array(tensor)

    assert back.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(back, array)


def test_memory_is_shared_where_it_may_be() -> None:
    for dtype in ("float32", ml_dtypes.bfloat16):
        array = np.ones((2, 3), dtype)
        tensor = to_tensor(array.T)
        tensor.zero_()
        assert not array.any()
        to_array(tensor)[...] = 2
        assert bool((tensor == 2).all())

    fixed = np.ones(3)
    fixed.flags.writeable = False
    to_tensor(fixed).zero_()
    assert fixed.all()


def test_dtypes_that_pytorch_lacks_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="PyTorch has no dtype 'float6_e2m3fn'"):
        to_tensor(np.ones(2, ml_dtypes.float6_e2m3fn))


@pytest.mark.parametrize("name", ["int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float8_e8m0fnu"])
def test_small_types_are_held_in_bytes(name: str) -> None:
    array = np.array([[0.5, 1], [1, 0.5]] if "8" in name else [[0, 1], [1, 0]], np.float32)
    array = array.astype(getattr(ml_dtypes, name))[:, ::-1]

    tensor = to_tensor(array)
    back = to_array(tensor, name)

    assert tensor.element_size() == 1
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    assert to_array(mark(tensor, name)).dtype == array.dtype


def test_marks_reach_into_lists() -> None:
    tensors = mark([torch.zeros(2, dtype=torch.int8), None], "int4")

    assert element_type(tensors[0]) == "int4"
    assert element_type(torch.zeros(2, dtype=torch.int8)) == "int8"
