"""Elements named by indices: reading, writing and comparing them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering._parameters import Size, length, product, vector

__all__ = ["element_positions", "from_last", "row_positions", "scatter_rows", "sort_keys", "to_last"]


def row_positions(indices: tf.Tensor, shape: Sequence[Size]) -> tf.Tensor:
    """Return the position, in row-major order, of the elements that tuples of indices name.

    Args:
        indices: ``[..., k]``; negative ones count from the end.
        shape: The k sizes that they index.

    Returns:
        ``[...]``, int64; the number of all elements where an index is out of range, which TensorFlow's kernels refuse.
    """
    indices = tf.cast(indices, tf.int64)
    if not shape:
        return tf.zeros(tf.shape(indices)[:-1], tf.int64)
    extent = vector(shape)
    wrapped = tf.where(indices < 0, indices + extent, indices)
    fits = tf.reduce_all((wrapped >= 0) & (wrapped < extent), -1)
    strides = vector([product(shape[axis + 1 :]) for axis in range(len(shape))])
    return tf.where(fits, tf.reduce_sum(wrapped * strides, -1), tf.reduce_prod(extent))


def element_positions(indices: tf.Tensor, axis: int, shape: Sequence[Size]) -> tf.Tensor:
    """Return the position, in row-major order, of ``x[i, ..., indices[i, ..., k], ..., k]``.

    Args:
        indices: Of the rank of x; negative ones count from the end.
        axis: Which axis they index.
        shape: Sizes of x.

    Returns:
        Of the shape of the indices, int64; out of range as for :func:`row_positions`.
    """
    indices = tf.cast(indices, tf.int64)
    extent = tf.cast(shape[axis], tf.int64)
    wrapped = tf.where(indices < 0, indices + extent, indices)
    fits = (wrapped >= 0) & (wrapped < extent)
    position = wrapped * tf.cast(product(shape[axis + 1 :]), tf.int64)
    own = tf.shape(indices, tf.int64)
    for other in range(len(shape)):
        if other != axis:
            steps = length(own[other]) * tf.cast(product(shape[other + 1 :]), tf.int64)
            position += tf.reshape(steps, [-1, *[1] * (len(shape) - other - 1)])
    return tf.where(fits, position, tf.cast(product(shape), tf.int64))


def scatter_rows(data: tf.Tensor, rows: tf.Tensor, updates: tf.Tensor, reduction: str) -> tf.Tensor:
    """Return data with rows replaced by, or combined with, updates.

    Args:
        data: ``[P, ...]``.
        rows: ``[n]``, which row each update is for.
        updates: ``[n, ...]``.
        reduction: ``"none"``, ``"add"``, ``"mul"``, ``"max"`` or ``"min"``.

    Raises:
        OperatorError: The reduction is none of these.
    """
    scatters = {
        "none": tf.tensor_scatter_nd_update,
        "add": tf.tensor_scatter_nd_add,
        "max": tf.tensor_scatter_nd_max,
        "min": tf.tensor_scatter_nd_min,
    }
    if reduction == "mul":
        return data * tf.math.unsorted_segment_prod(updates, rows, tf.shape(data, tf.int64)[0])
    if reduction not in scatters:
        raise OperatorError(f"Scattering has the reduction {reduction!r}; accepted are mul, {', '.join(scatters)}.")
    return scatters[reduction](data, rows[:, None], updates)


def sort_keys(x: tf.Tensor) -> tf.Tensor:
    """Return integers in the order of the elements: both zeros are equal, NaN is equal to itself and the largest."""
    if x.dtype == tf.bool:
        return tf.cast(x, tf.int32)
    if x.dtype.is_integer:
        return x
    x = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    integer = tf.int32 if x.dtype.size == 4 else tf.int64
    # One zero, and one NaN, which is positive.
    single = tf.where(x == 0, tf.zeros([], x.dtype), x)
    bits = tf.bitcast(tf.where(tf.math.is_nan(x), tf.constant(np.nan, x.dtype), single), integer)
    return tf.where(bits < 0, tf.bitwise.bitwise_xor(bits, tf.constant(integer.max, integer)), bits)


def to_last(x: tf.Tensor, axis: int) -> tf.Tensor:
    """Return x with an axis moved to the last place."""
    rank = x.shape.rank
    return x if axis == rank - 1 else tf.transpose(x, [*(a for a in range(rank) if a != axis), axis])


def from_last(x: tf.Tensor, axis: int) -> tf.Tensor:
    """Return x with the last axis moved to a place."""
    rank = x.shape.rank
    return x if axis == rank - 1 else tf.transpose(x, [*range(axis), rank - 1, *range(axis, rank - 1)])
