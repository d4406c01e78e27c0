"""Reductions, positions of extrema, and cumulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from deep500.frameworks.tensorflow._known import known_value, needed_value
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "arg_max",
    "arg_min",
    "cum_prod",
    "cum_sum",
    "reduce_l1",
    "reduce_l2",
    "reduce_log_sum",
    "reduce_log_sum_exp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reduce_sum_square",
]


@lowerings.register("ReduceMean", since=18)
def reduce_mean(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the mean over some axes, all by default. Source: ONNX ReduceMean-18."""
    return _reduce(_mean, node, x, axes)


@lowerings.register("ReduceSum", since=13)
def reduce_sum(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the sum over some axes, all by default. Source: ONNX ReduceSum-13."""
    return _reduce(tf.math.reduce_sum, node, x, axes)


@lowerings.register("ReduceProd", since=18)
def reduce_prod(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the product over some axes, all by default. Source: ONNX ReduceProd-18."""
    return _reduce(tf.math.reduce_prod, node, x, axes)


@lowerings.register("ReduceMax", since=18)
def reduce_max(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the maximum over some axes, all by default. Source: ONNX ReduceMax-20."""
    return _reduce(tf.math.reduce_any if x.dtype == tf.bool else tf.math.reduce_max, node, x, axes)


@lowerings.register("ReduceMin", since=18)
def reduce_min(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the minimum over some axes, all by default. Source: ONNX ReduceMin-20."""
    return _reduce(tf.math.reduce_all if x.dtype == tf.bool else tf.math.reduce_min, node, x, axes)


@lowerings.register("ReduceL1", since=18)
def reduce_l1(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the sum of absolute values over some axes, all by default. Source: ONNX ReduceL1-18."""
    return _reduce(tf.math.reduce_sum, node, x if x.dtype.is_unsigned else tf.math.abs(x), axes)


@lowerings.register("ReduceSumSquare", since=18)
def reduce_sum_square(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the sum of squares over some axes, all by default. Source: ONNX ReduceSumSquare-18."""
    return _reduce(tf.math.reduce_sum, node, x * x, axes)


@lowerings.register("ReduceL2", since=18)
def reduce_l2(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the square root of the sum of squares over some axes, all by default. Source: ONNX ReduceL2-18."""
    wide = _as_float(x)
    squares = _reduce(tf.math.reduce_sum, node, wide * wide, axes)
    # The norm has no derivative at 0; 0 is one of its subgradients.
    is_zero = tf.equal(squares, 0)
    roots = tf.math.sqrt(tf.where(is_zero, tf.ones_like(squares), squares))
    return tf.cast(tf.where(is_zero, tf.zeros_like(roots), roots), x.dtype)


@lowerings.register("ReduceLogSum", since=18)
def reduce_log_sum(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the logarithm of the sum over some axes, all by default. Source: ONNX ReduceLogSum-18."""
    return tf.cast(tf.math.log(_reduce(tf.math.reduce_sum, node, _as_float(x), axes)), x.dtype)


@lowerings.register("ReduceLogSumExp", since=18)
def reduce_log_sum_exp(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return the logarithm of the sum of exponentials over some axes, all by default.

    Source: ONNX ReduceLogSumExp-18.
    """
    return tf.cast(_reduce(tf.math.reduce_logsumexp, node, _as_float(x), axes), x.dtype)


@lowerings.register("ArgMax", since=11)
def arg_max(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the position of the maximum along an axis: the first, or the last one. Source: ONNX ArgMax-13."""
    return _position(tf.math.argmax, node, x)


@lowerings.register("ArgMin", since=11)
def arg_min(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the position of the minimum along an axis: the first, or the last one. Source: ONNX ArgMin-13."""
    return _position(tf.math.argmin, node, x)


@lowerings.register("CumSum", since=11)
def cum_sum(node: OperatorNode, x: tf.Tensor, axis: tf.Tensor) -> tf.Tensor:
    """Return the sums of all elements up to each one along an axis. Source: ONNX CumSum-14."""
    return tf.math.cumsum(x, _axis(axis), **_direction(node))


@lowerings.register("CumProd", since=26)
def cum_prod(node: OperatorNode, x: tf.Tensor, axis: tf.Tensor) -> tf.Tensor:
    """Return the products of all elements up to each one along an axis. Source: ONNX CumProd-26."""
    if not x.dtype.is_floating:
        return tf.math.cumprod(x, _axis(axis), **_direction(node))
    given = int(needed_value(node, axis, "its axis").ravel()[0])
    rank = x.shape.rank
    order = [given % rank, *(other for other in range(rank) if other != given % rank)]
    products = _cumulated(tf.transpose(x, order), **_direction(node))
    return tf.ensure_shape(tf.transpose(products, np.argsort(order)), x.shape)


def _cumulated(x: tf.Tensor, exclusive: bool, reverse: bool) -> tf.Tensor:
    """Return the products along the first axis, with a gradient that is right where an element is 0."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def products(factors: tf.Tensor) -> Any:
        before = tf.math.cumprod(factors, 0, exclusive=True)
        y = before if exclusive else before * factors

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            # What depends on an element is the products of the elements before it, times those behind it: s.
            following = tf.concat([factors[1:], tf.ones_like(factors[:1])], 0)
            if exclusive:
                upstream = tf.concat([upstream[1:], tf.zeros_like(upstream[:1])], 0)
            zero = tf.zeros(tf.shape(factors)[1:], factors.dtype)
            s = tf.scan(lambda total, step: step[0] + step[1] * total, (upstream, following), zero, reverse=True)
            return before * s

        return y, gradient

    if 0 in x.shape.as_list():
        return tf.identity(x)
    if reverse:
        return tf.reverse(products(tf.reverse(x, [0])), [0])
    return products(x)


def _direction(node: OperatorNode) -> dict[str, bool]:
    return {name: bool(node.attributes.get(name, 0)) for name in ("exclusive", "reverse")}


def _axis(axis: tf.Tensor) -> Any:
    value = tf.get_static_value(axis)
    return tf.reshape(axis, []) if value is None else int(np.ravel(value)[0])


def _reduce(operation: Callable[..., tf.Tensor], node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None) -> tf.Tensor:
    # The layout's plan renames axes that are constants.
    given = node.constants.get(1)
    if given is None and axes is not None:
        given = known_value(axes) if axes.shape.num_elements() else None
        if given is None and axes.shape.num_elements() is None:
            given = needed_value(node, axes, "the number of its axes")
        if given is None and axes.shape.num_elements():
            return _reduce_along(operation, node, x, axes)
    chosen = None if given is None or not given.size else [int(axis) for axis in given.ravel()]
    if chosen is None and node.attributes.get("noop_with_empty_axes", 0):
        return tf.identity(x)
    return operation(x, chosen, keepdims=bool(node.attributes.get("keepdims", 1)))


def _reduce_along(operation: Callable[..., tf.Tensor], node: OperatorNode, x: tf.Tensor, axes: tf.Tensor) -> tf.Tensor:
    """Reduce over axes that are known only when the graph runs."""
    kept = bool(node.attributes.get("keepdims", 1))
    y = operation(x, tf.reshape(axes, [-1]), keepdims=kept)
    if x.shape.rank is not None:
        y.set_shape([None] * (x.shape.rank - (0 if kept else axes.shape.num_elements())))
    return y


def _mean(x: tf.Tensor, axes: Any, keepdims: bool) -> tf.Tensor:
    if not x.dtype.is_integer:
        return tf.math.reduce_mean(x, axes, keepdims=keepdims)
    # The sum may be out of the type's range, and the quotient is rounded towards zero.
    wide = x if x.dtype == tf.uint64 else tf.cast(x, tf.int64)
    total = tf.math.reduce_sum(wide, axes, keepdims=keepdims)
    count = tf.math.reduce_sum(tf.ones_like(wide), axes, keepdims=keepdims)
    return tf.cast(tf.truncatediv(total, count), x.dtype)


def _as_float(x: tf.Tensor) -> tf.Tensor:
    return x if x.dtype.is_floating else tf.cast(x, tf.float64)


def _position(operation: Callable[..., tf.Tensor], node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    axis = int(node.attributes.get("axis", 0)) % max(x.shape.rank, 1)
    if x.shape.rank == 0:
        return tf.zeros([], tf.int64)
    if node.attributes.get("select_last_index", 0):
        y = tf.shape(x, tf.int64)[axis] - 1 - operation(tf.reverse(x, [axis]), axis)
    else:
        y = operation(x, axis)
    return tf.expand_dims(y, axis) if node.attributes.get("keepdims", 1) else y
