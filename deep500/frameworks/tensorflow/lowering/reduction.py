"""Reductions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = ["reduce_mean", "reduce_sum"]


@lowerings.register("ReduceMean", since=18)
def reduce_mean(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the mean over some axes, all by default. Source: ONNX ReduceMean-18."""
    return _reduce(tf.math.reduce_mean, node, x)


@lowerings.register("ReduceSum", since=13)
def reduce_sum(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the sum over some axes, all by default. Source: ONNX ReduceSum-13."""
    return _reduce(tf.math.reduce_sum, node, x)


def _reduce(operation: Any, node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    given = node.constant(1)
    axes = None if given is None or not given.size else [int(axis) for axis in given.ravel()]
    if axes is None and node.attributes.get("noop_with_empty_axes", 0):
        return tf.identity(x)
    return operation(x, axes, keepdims=bool(node.attributes.get("keepdims", 1)))
