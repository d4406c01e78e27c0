"""Softmax along the last dimension."""

from __future__ import annotations

import tensorflow as tf

__all__ = ["softmax"]


def softmax(x: tf.Tensor) -> tf.Tensor:
    """Return exp(x) / sum(exp(x)) along the last dimension; NaN where one of its entries is NaN or infinity."""
    # TensorFlow's kernel gives zeros beside NaN and infinity; what is added is 0 or, where the maximum is neither, NaN.
    return tf.nn.softmax(x) + tf.stop_gradient(0 * tf.reduce_max(x, -1, keepdims=True))
