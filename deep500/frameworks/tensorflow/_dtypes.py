"""Element types: which one of TensorFlow's holds the elements of each of ONNX'.

TensorFlow computes with NumPy's types, bfloat16 and texts. Of ONNX' floats of 8 and 4 bits and integers of 4 and 2 bits
it has names at most, hardly any kernels, and its graph optimiser fails on some. So a program holds them in bytes, one a
byte: integers as their values (int8, uint8), floats as their bits (uint8). What a byte means is what the network
declares; casts and quantisation compute with it, operators that only move elements need not know.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import STRING, TensorDescriptor, numpy_dtype

__all__ = [
    "BIT_FLOATS",
    "SMALL_INTEGERS",
    "held_array",
    "held_dtype",
    "hold",
    "is_held",
    "released_array",
    "released_value",
    "to_array",
]

#: Floats that are held as their bits.
BIT_FLOATS = (
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
)

#: Integers that are held as their values, with the type that holds them.
SMALL_INTEGERS = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}

#: Types of most inputs, which TensorFlow holds as they are.
_PLAIN = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "uint8", "bool")))


def is_held(dtype: str) -> bool:
    """Return whether elements of a type (NumPy's name) are held in bytes of another one."""
    return dtype in BIT_FLOATS or dtype in SMALL_INTEGERS


def held_dtype(dtype: str) -> tf.DType:
    """Return TensorFlow's type that holds elements of a type (NumPy's name, or ``"string"``).

    Raises:
        InvalidInputError: TensorFlow has none.
    """
    if dtype == STRING:
        return tf.string
    if is_held(dtype):
        return tf.as_dtype(SMALL_INTEGERS.get(dtype, "uint8"))
    try:
        return tf.as_dtype(numpy_dtype(dtype))
    except TypeError as error:
        raise InvalidInputError(f"TensorFlow has no dtype {dtype!r}. Cast the tensor to one that it has.") from error


def held_array(value: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the type that TensorFlow holds its elements in."""
    name = value.dtype.name
    if name in BIT_FLOATS:
        return value.view(np.uint8)
    if name in SMALL_INTEGERS:
        return value.astype(SMALL_INTEGERS[name])
    return value


def hold(value: Any) -> tf.Tensor:
    """Return an array, or a tensor of TensorFlow, as a tensor in the type that programs hold its elements in."""
    if type(value) is np.ndarray and value.dtype in _PLAIN:  # a minibatch; what follows takes as long as a small layer
        return tf.constant(value)
    name = value.dtype.name
    if isinstance(value, (tf.Tensor, tf.Variable)):
        return tf.convert_to_tensor(held_array(value.numpy()) if is_held(name) else value)
    return tf.constant(held_array(value))  # sooner done than tf.convert_to_tensor


def release(tensor: tf.Tensor, dtype: str) -> Any:
    """Return what a program computed in the type that the network declares.

    Args:
        tensor: A tensor as the program holds it.
        dtype: NumPy's name of the declared type.

    Returns:
        A tensor; a NumPy array where TensorFlow has not even a name for the type.
    """
    if not is_held(dtype) or tensor.dtype != held_dtype(dtype):
        return tensor
    array = released_array(tensor.numpy(), dtype)
    try:
        return tf.convert_to_tensor(array)
    except ValueError:
        return array


def released_array(value: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return the inverse of :func:`held_array` for a declared type."""
    if dtype in BIT_FLOATS:
        return value.view(numpy_dtype(dtype))
    return value.astype(numpy_dtype(dtype)) if dtype in SMALL_INTEGERS else value


def released_value(value: Any, descriptor: Any) -> Any:
    """Return a value of any kind as the network declares it; see :func:`release`."""
    if isinstance(value, (list, tuple)):
        element = getattr(descriptor, "element", None)
        return [released_value(entry, getattr(element, "element", element)) for entry in value]
    while descriptor is not None and not isinstance(descriptor, TensorDescriptor):
        descriptor = descriptor.element
    return value if value is None or descriptor is None else release(value, descriptor.dtype)


def to_array(tensor: Any) -> NDArray[Any]:
    """Return a tensor as a NumPy array, without a copy where TensorFlow allows; texts as objects of ``str``."""
    value = tensor.numpy() if hasattr(tensor, "numpy") else tensor
    array = np.asarray(value, dtype=object) if isinstance(value, bytes) else np.asarray(value)
    if array.dtype != object:
        return array
    texts = np.empty(array.shape, dtype=object)
    texts.ravel()[:] = [text.decode() if isinstance(text, bytes) else text for text in array.ravel()]
    return texts
