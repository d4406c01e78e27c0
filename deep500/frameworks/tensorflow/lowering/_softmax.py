"""Softmax along one dimension, and its logarithm."""

from __future__ import annotations

import functools

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering._sums import summed_in_float32

__all__ = ["log_softmax", "softmax"]


def softmax(x: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Return exp(x) / sum(exp(x)) along one dimension; NaN where one of its entries is NaN or infinity."""
    y = summed_in_float32(functools.partial(tf.nn.softmax, axis=axis), x)
    # TensorFlow's kernel gives zeros beside NaN and infinity; what is added is 0 or, where the maximum is neither, NaN.
    return y + tf.stop_gradient(0 * tf.reduce_max(x, axis, keepdims=True))


def log_softmax(x: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Return x - log(sum(exp(x))) along one dimension."""
    return summed_in_float32(functools.partial(tf.nn.log_softmax, axis=axis), x)
