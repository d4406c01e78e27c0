from __future__ import annotations

import contextlib
import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deep500.core.errors import Deep500Error, InvalidInputError
from deep500.core.tensor_descriptor import EXTENDED_DTYPES, TensorDescriptor, numpy_dtype, tensordesc

NUMPY_DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]

dimensions = st.one_of(st.integers(0, 2**40), st.sampled_from(["batch", "height", "n"]), st.none())
sizes = st.lists(st.integers(0, 6), max_size=4)


@pytest.mark.parametrize("name", [*NUMPY_DTYPES, *EXTENDED_DTYPES])
def test_every_dtype_keeps_its_name(name: str) -> None:
    descriptor = TensorDescriptor(name, (2, 3))

    assert descriptor.dtype == name
    assert descriptor.numpy_dtype.name == name
    assert np.zeros((2, 3), descriptor.numpy_dtype).nbytes == descriptor.size_bytes
    assert str(descriptor) == f"{name}[2, 3]"


@pytest.mark.parametrize("name", EXTENDED_DTYPES)
def test_extended_dtype_is_accepted_as_type_dtype_and_name(name: str) -> None:
    scalar = getattr(ml_dtypes, name)

    assert numpy_dtype(scalar) == numpy_dtype(np.dtype(scalar)) == numpy_dtype(name) == np.dtype(scalar)


@pytest.mark.parametrize(
    ("dtype", "name"), [(np.float32, "float32"), (float, "float64"), (np.dtype("<i4"), "int32"), ("f2", "float16")]
)
def test_dtype_is_named_as_numpy_names_it(dtype: Any, name: str) -> None:
    assert TensorDescriptor(dtype).dtype == name


@pytest.mark.parametrize("dtype", ["float33", "", "f4,i4", "str", "U3", object, "M8[s]", "V4", None, 5, [], "f4,,("])
def test_what_is_no_dtype_of_numbers_is_refused(dtype: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"is not a dtype of numbers.*bfloat16"):
        TensorDescriptor(dtype, (1,))


@given(st.text(max_size=8))
@example("i4, (2,")
def test_no_text_breaks_the_parsing_of_dtypes(text: str) -> None:
    with contextlib.suppress(Deep500Error):
        assert numpy_dtype(numpy_dtype(text).name).name == numpy_dtype(text).name


@given(st.lists(dimensions, max_size=5))
def test_shape_is_kept(shape: list[Any]) -> None:
    descriptor = TensorDescriptor("float32", shape)

    assert descriptor.shape == tuple(shape)
    assert descriptor.rank == len(shape)
    assert descriptor.is_static == all(isinstance(d, int) for d in shape)
    assert (descriptor.element_count is None) == (not descriptor.is_static)
    assert pickle.loads(pickle.dumps(descriptor)) == copy.deepcopy(descriptor) == descriptor
    assert hash(descriptor) == hash(TensorDescriptor("float32", tuple(shape)))


@given(sizes)
def test_static_shape_counts_elements_and_bytes(shape: list[int]) -> None:
    array = np.zeros(shape, np.float16)
    descriptor = TensorDescriptor("float16", [np.int64(d) for d in shape])

    assert descriptor.element_count == array.size
    assert descriptor.size_bytes == array.nbytes
    assert all(type(d) is int for d in descriptor.shape or ())


def test_unknown_rank() -> None:
    descriptor = TensorDescriptor("int64")

    assert descriptor.rank is None
    assert not descriptor.is_static
    assert descriptor.element_count is None
    assert descriptor.size_bytes is None
    assert descriptor.accepts_shape((1, 2, 3))
    assert str(descriptor) == "int64[...]"


@pytest.mark.parametrize(
    "shape", [(-1,), (1.0,), (True,), (np.bool_(True),), ((1, 2),), (2, b"n"), "abc", b"ab", 5, 1.5]
)
def test_what_is_no_shape_is_refused(shape: Any) -> None:
    with pytest.raises(InvalidInputError, match="Accepted are"):
        TensorDescriptor("float32", shape)


@pytest.mark.parametrize(
    ("declared", "shape", "accepted"),
    [
        ((), (), True),
        ((), (1,), False),
        ((2, 3), (2, 3), True),
        ((2, 3), (3, 2), False),
        ((2, 3), (2, 3, 1), False),
        (("n", 3), (0, 3), True),
        (("n", "n"), (4, 4), True),
        (("n", "n"), (4, 5), False),
        (("n", "m", "n"), (4, 5, 4), True),
        (("n", 2, "n"), (4, 2, 5), False),
        ((None, None), (4, 5), True),
        (("n", None, "n"), (1, 9, 1), True),
    ],
)
def test_accepts_shape(declared: tuple[Any, ...], shape: tuple[int, ...], accepted: bool) -> None:
    assert TensorDescriptor("float32", declared).accepts_shape(shape) is accepted


@given(sizes, st.data())
def test_shape_is_accepted_however_many_of_its_sizes_are_symbols(shape: list[int], data: st.DataObject) -> None:
    declared = [data.draw(st.sampled_from([size, f"size{size}", None])) for size in shape]

    assert TensorDescriptor("float32", declared).accepts_shape(shape)
    assert not TensorDescriptor("float32", declared).accepts_shape([*shape, 1])


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [((4, 3), (4, 3)), (((4, 3),), (4, 3)), (([4],), (4,)), ((), ()), ((None,), None), (("batch",), ("batch",))],
)
def test_shorthand(arguments: tuple[Any, ...], shape: Any) -> None:
    assert tensordesc("float32", *arguments) == TensorDescriptor("float32", shape)


def test_descriptor_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TensorDescriptor("float32").dtype = "int8"  # type: ignore[misc]
