"""Operators that move elements without changing them."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = ["concat", "flatten", "reshape", "squeeze", "transpose", "unsqueeze"]


@lowerings.register("Flatten", since=1)
def flatten(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return a matrix: the sizes before an axis are multiplied, and those from it on. Source: ONNX Flatten-25."""
    axis = node.attributes.get("axis", 1)
    if axis < 0:
        axis += x.shape.rank
    return tf.reshape(x, _merged(_product(x, range(axis)), _product(x, range(axis, x.shape.rank))))


@lowerings.register("Reshape", since=5)
def reshape(node: OperatorNode, x: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Return x in another shape; 0 keeps a size (unless ``allowzero``), -1 is what remains.

    Source: ONNX Reshape-25.
    """
    keeps = not node.attributes.get("allowzero", 0)
    if 1 not in node.constants:
        if keeps:
            own = tf.cast(tf.shape(x), shape.dtype)
            count = tf.size(shape) - tf.minimum(tf.size(shape), tf.size(own))
            own = tf.concat([own, tf.ones([count], own.dtype)], 0)[: tf.size(shape)]
            shape = tf.where(shape == 0, own, shape)
        return tf.reshape(x, shape)
    wanted = [int(size) for size in node.constants[1]]
    sizes = [_size(x, axis) if size == 0 and keeps else size for axis, size in enumerate(wanted)]
    unknown = [index for index, size in enumerate(sizes) if not isinstance(size, int)]
    if len(unknown) == 1 and all(size > 0 for size in sizes if isinstance(size, int)):
        sizes[unknown[0]] = -1
    return tf.reshape(x, sizes)


@lowerings.register("Transpose", since=1)
def transpose(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x with its dimensions in another order, reversed by default. Source: ONNX Transpose-25."""
    return tf.transpose(x, node.attributes.get("perm"))


@lowerings.register("Concat", since=4)
def concat(node: OperatorNode, *tensors: tf.Tensor) -> tf.Tensor:
    """Return the tensors behind each other along an axis. Source: ONNX Concat-13."""
    return tf.concat(tensors, node.attributes["axis"])


@lowerings.register("Squeeze", since=13)
def squeeze(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return x without some dimensions of size 1, all by default. Source: ONNX Squeeze-25."""
    given = node.constant(1)
    if given is None:
        return tf.squeeze(x)
    # For TensorFlow an empty list of axes means all of them.
    return tf.squeeze(x, [int(axis) for axis in given.ravel()]) if given.size else tf.identity(x)


@lowerings.register("Unsqueeze", since=13)
def unsqueeze(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor) -> tf.Tensor:
    """Return x with dimensions of size 1 at some axes of the result. Source: ONNX Unsqueeze-25."""
    given = node.constant(1)
    if given is None:
        return x
    rank = x.shape.rank + given.size
    for axis in sorted(int(axis) % rank for axis in given.ravel()):
        x = tf.expand_dims(x, axis)
    return x


def _size(x: tf.Tensor, axis: int) -> Any:
    size = x.shape[axis]
    return tf.shape(x)[axis] if size is None else size


def _product(x: tf.Tensor, axes: range) -> Any:
    sizes = [_size(x, axis) for axis in axes]
    if all(isinstance(size, int) for size in sizes):
        return math.prod(sizes)
    return tf.reduce_prod(tf.stack(sizes))


def _merged(rows: Any, columns: Any) -> list[Any]:
    """Return the two sizes, -1 for an unknown one, so that the known one stays known to TensorFlow."""
    if isinstance(columns, int) and columns and not isinstance(rows, int):
        return [-1, columns]
    if isinstance(rows, int) and rows and not isinstance(columns, int):
        return [rows, -1]
    return [rows, columns]
