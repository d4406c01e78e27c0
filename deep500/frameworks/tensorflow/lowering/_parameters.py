"""Sizes and parameters that are numbers where tracing knows them, and scalars of the graph where it does not.

A lowering computes with both alike, so that shapes stay static as far as they are known. Scalars are int64.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.frameworks.tensorflow._known import needed_value
from deep500.frameworks.tensorflow.lowering._traced_entries import traced_entries
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "Size",
    "declared",
    "entries",
    "length",
    "maximum",
    "minimum",
    "nonnegative_axis",
    "product",
    "scalar",
    "size",
    "sizes",
    "static",
    "vector",
]

#: A number, or an int64 scalar of the graph.
Size: TypeAlias = Any


def static(x: tf.Tensor | None) -> NDArray[Any] | None:
    """Return the value of a tensor that is known for all runs of the graph, ``None`` for others and absent ones."""
    value = None if x is None else tf.get_static_value(x)
    return None if value is None else np.asarray(value)


def size(x: tf.Tensor, axis: int) -> Size:
    """Return one size of a tensor of known rank."""
    known = x.shape[axis]
    return tf.shape(x, tf.int64)[axis] if known is None else known


def sizes(x: tf.Tensor) -> list[Size]:
    """Return all sizes of a tensor of known rank."""
    if x.shape.is_fully_defined():
        return list(x.shape.as_list())
    shape = tf.shape(x, tf.int64)
    return [shape[axis] if known is None else known for axis, known in enumerate(x.shape.as_list())]


def entries(node: OperatorNode, x: tf.Tensor, what: str) -> list[Size]:
    """Return the entries of a vector of integers.

    Args:
        node: Whose input it is.
        x: The vector.
        what: What its length decides about, for the message.

    Raises:
        UnsupportedOperatorError: Not even its length is known.
    """
    value = static(x)
    count = x.shape.num_elements()
    if value is None and count is None:
        value = needed_value(node, x, what)
    if value is not None:
        return [int(entry) for entry in value.ravel()]
    flat = tf.cast(tf.reshape(x, [count]), tf.int64)
    known: list[int | None] = traced_entries(x) or [None] * (count or 0)
    if x.shape.rank == 1 and None in known:
        with contextlib.suppress(ValueError):  # an entry cannot be a size
            # TensorFlow infers what it can of a shape, piece by piece.
            inferred = tf.broadcast_to(tf.constant(False), x).shape.as_list()
            known = [b if a is None else a for a, b in zip(known, inferred, strict=True)]
    return [entry if number is None else number for entry, number in zip(tf.unstack(flat, count), known, strict=True)]


def scalar(x: tf.Tensor) -> Size:
    """Return the one entry of a tensor of integers."""
    value = static(x)
    return tf.cast(tf.reshape(x, []), tf.int64) if value is None else int(value.ravel()[0])


def vector(values: Sequence[Size]) -> tf.Tensor:
    """Return sizes as an int64 vector."""
    if not values or all(isinstance(value, int) for value in values):
        return tf.constant(list(values), tf.int64, [len(values)])
    return tf.stack([tf.cast(value, tf.int64) for value in values])


def product(values: Sequence[Size]) -> Size:
    """Return the product of sizes."""
    result: Size = 1
    for value in values:
        result = value if isinstance(result, int) and result == 1 else result * value
    return result


def maximum(a: Size, b: Size) -> Size:
    """Return the larger of two sizes."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else tf.maximum(_int64(a), _int64(b))


def minimum(a: Size, b: Size) -> Size:
    """Return the smaller of two sizes."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else tf.minimum(_int64(a), _int64(b))


def length(count: Size) -> tf.Tensor:
    """Return the numbers from 0 up to a count, int64."""
    return tf.range(_int64(count), dtype=tf.int64)


def nonnegative_axis(node: OperatorNode, rank: int, default: int = 0, name: str = "axis") -> int:
    """Return the attribute of a node that names an axis, counted from the first."""
    axis = int(node.attributes.get(name, default))
    return axis + rank if axis < 0 else axis


def declared(node: OperatorNode, y: tf.Tensor, index: int = 0) -> tf.Tensor:
    """Return an output that knows of its shape what the network says, where tracing did not find it out."""
    kind = node.output_types[index] if index < len(node.output_types) else None
    if kind is not None and kind.shape is not None:
        shape = tf.TensorShape([d if isinstance(d, int) else None for d in kind.shape])
        if y.shape.is_compatible_with(shape):
            y.set_shape(shape)
    return y


def _int64(value: Size) -> tf.Tensor:
    return tf.cast(value, tf.int64)
