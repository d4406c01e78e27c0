"""Numbers of eight bits and fewer, which TensorFlow does not compute with: from and to what holds them.

See :mod:`deep500.frameworks.tensorflow._dtypes` for how they are held.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.tensor_descriptor import numpy_dtype
from deep500.frameworks.tensorflow._dtypes import BIT_FLOATS, SMALL_INTEGERS

__all__ = ["decode", "element_type", "encode", "wrapped"]


def element_type(declared: Any, tensor: tf.Tensor) -> str:
    """Return NumPy's name of the element type of a tensor that may be held in another one.

    Args:
        declared: Its descriptor, ``None`` where it is unknown.
        tensor: The tensor.
    """
    return str(tensor.dtype.name if declared is None else declared.dtype)


def decode(bits: tf.Tensor, dtype: str, to: tf.DType = tf.float32) -> tf.Tensor:
    """Return the values of floats that are held as bits.

    Args:
        bits: Bits, uint8.
        dtype: What they mean, one of ``BIT_FLOATS``.
        to: Type of the result.
    """
    codes = np.arange(_code_count(dtype), dtype=np.uint8)
    table = codes.view(numpy_dtype(dtype)).astype(np.float64)
    return tf.gather(tf.constant(table, to), tf.cast(bits, tf.int32))


def encode(x: tf.Tensor, dtype: str, saturate: bool = True, round_mode: str = "up") -> tf.Tensor:
    """Return floats as the bits of a narrow type, rounded to the nearest, ties to even.

    Args:
        x: Floats.
        dtype: One of ``BIT_FLOATS``.
        saturate: Whether values that are too large become the largest one; else infinity, or NaN without one.
        round_mode: How ``float8_e8m0fnu`` is rounded: ``"up"``, ``"down"`` or ``"nearest"``.

    Returns:
        Bits, uint8.
    """
    if dtype == "float8_e8m0fnu":
        return _encode_exponent(tf.cast(x, tf.float32), saturate, round_mode)
    wide = x if x.dtype == tf.float64 else tf.cast(x, tf.float32)
    middles, nan, overflow = _rounding(dtype)
    size = tf.reshape(tf.abs(wide), [-1])
    borders = tf.constant(middles, wide.dtype)
    # Between a value and the next one lies a border; on the border, the even one of both is taken.
    low, high = (tf.searchsorted(borders, size, side) for side in ("left", "right"))
    code = tf.where(high % 2 == 0, high, low)
    largest = len(middles) - 1
    code = tf.where(code > largest, largest if saturate else overflow, code)
    code = tf.reshape(code, tf.shape(wide))
    sign = _code_count(dtype) // 2
    negative = _is_negative(wide)
    if dtype.endswith("fnuz"):  # there is no negative zero; its bits are NaN
        negative = tf.logical_and(negative, tf.logical_and(code > 0, code < sign))
    code = tf.where(tf.math.is_nan(wide), nan, tf.where(negative, code | sign, code))
    return tf.ensure_shape(tf.cast(code, tf.uint8), x.shape)


def wrapped(x: tf.Tensor, dtype: str) -> tf.Tensor:
    """Return integers as the values of a small integer type, without the bits that it lacks.

    Args:
        x: Integers.
        dtype: One of ``SMALL_INTEGERS``.
    """
    count = int(dtype.removeprefix("u").removeprefix("int"))
    bits = tf.bitwise.bitwise_and(x, tf.constant(2**count - 1, x.dtype))
    bits = tf.cast(bits, tf.int8)
    if not dtype.startswith("u"):
        sign = tf.constant(2 ** (count - 1), tf.int8)
        bits = tf.bitwise.bitwise_xor(bits, sign) - sign
    return tf.cast(bits, SMALL_INTEGERS[dtype])


def _code_count(dtype: str) -> int:
    assert dtype in BIT_FLOATS
    return 16 if dtype == "float4_e2m1fn" else 256


@functools.cache
def _rounding(dtype: str) -> tuple[NDArray[np.float64], int, int]:
    """Return the borders between the values that are not negative, the code of NaN, and that of what is too large."""
    kind = numpy_dtype(dtype)
    codes = np.arange(_code_count(dtype) // 2, dtype=np.uint8)
    values = codes.view(kind).astype(np.float64)
    finite = values[np.isfinite(values)]
    following = 2 * finite[-1] - finite[-2]
    middles = (finite + np.append(finite[1:], following)) / 2
    nan, overflow = (int(np.array(v, np.float32).astype(kind).view(np.uint8)) for v in (np.nan, np.inf))
    return middles, nan, overflow


def _is_negative(x: tf.Tensor) -> tf.Tensor:
    """Return the sign bit, which zeros have, too."""
    integers = tf.int64 if x.dtype == tf.float64 else tf.int32
    return tf.bitcast(x, integers) < 0


def _encode_exponent(x: tf.Tensor, saturate: bool, round_mode: str) -> tf.Tensor:
    """Return the exponents of float32 numbers: 0 is 2**-127, 254 is 2**127, 255 is NaN."""
    bits = tf.bitcast(x, tf.int32)
    exponent = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, 23), 0xFF)
    fraction = tf.bitwise.bitwise_and(bits, 0x7FFFFF)
    up = tf.zeros_like(fraction, tf.bool)
    if round_mode == "up":
        up = fraction > 0
    elif round_mode == "nearest":
        # Half a step up is to the even one; the smallest exponent stands for itself and for what is below it.
        up = tf.logical_or(fraction > 0x400000, tf.logical_and(fraction == 0x400000, exponent > 0))
    rounded = exponent + tf.cast(up, tf.int32)
    if saturate:
        rounded = tf.minimum(rounded, 254)
    is_nan = tf.math.is_nan(x)
    return tf.cast(tf.where(is_nan, 0xFF, tf.minimum(rounded, 0xFF)), tf.uint8)
