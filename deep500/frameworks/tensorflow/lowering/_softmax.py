"""Softmax along one dimension."""

from __future__ import annotations

import tensorflow as tf

__all__ = ["softmax"]


def softmax(x: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Return exp(x) / sum(exp(x)) along one dimension; NaN where one of its entries is NaN or infinity."""
    # TensorFlow's kernel gives zeros beside NaN and infinity; what is added is 0 or, where the maximum is neither, NaN.
    return tf.nn.softmax(x, axis) + tf.stop_gradient(0 * tf.reduce_max(x, axis, keepdims=True))
