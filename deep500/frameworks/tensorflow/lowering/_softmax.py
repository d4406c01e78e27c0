"""Softmax along one dimension, and its logarithm."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

__all__ = ["log_softmax", "softmax"]

_NARROW = (tf.float16, tf.bfloat16)


def softmax(x: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Return exp(x) / sum(exp(x)) along one dimension; NaN where one of its entries is NaN or infinity."""
    if x.dtype in _NARROW:
        return _in_float32(softmax, x, axis)
    # TensorFlow's kernel gives zeros beside NaN and infinity; what is added is 0 or, where the maximum is neither, NaN.
    return tf.nn.softmax(x, axis) + tf.stop_gradient(0 * tf.reduce_max(x, axis, keepdims=True))


def log_softmax(x: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Return x - log(sum(exp(x))) along one dimension."""
    if x.dtype in _NARROW:
        return _in_float32(log_softmax, x, axis)
    return tf.nn.log_softmax(x, axis)


def _in_float32(function: Callable[[tf.Tensor, int], tf.Tensor], x: tf.Tensor, axis: int) -> tf.Tensor:
    """Return what is computed in float32 and rounded once: some processors' kernels add up in the narrow type."""
    return tf.cast(function(tf.cast(x, tf.float32), axis), x.dtype)
