"""Heads of attentions: packed into the last dimension of a tensor, or a dimension of their own."""

from __future__ import annotations

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering._parameters import size, vector

__all__ = ["packed", "unpacked"]


def unpacked(x: tf.Tensor, heads: int) -> tf.Tensor:
    """Return ``[N, T, heads * D]`` as ``[N, heads, T, D]``."""
    width = None if x.shape[2] is None else x.shape[2] // heads
    y = tf.reshape(x, vector([size(x, 0), size(x, 1), heads, size(x, 2) // heads]))
    y.set_shape([*x.shape[:2], heads, width])
    return tf.transpose(y, [0, 2, 1, 3])


def packed(x: tf.Tensor) -> tf.Tensor:
    """Return ``[N, heads, T, D]`` as ``[N, T, heads * D]``."""
    y = tf.reshape(tf.transpose(x, [0, 2, 1, 3]), vector([size(x, 0), size(x, 2), size(x, 1) * size(x, 3)]))
    known = x.shape[1] is not None and x.shape[3] is not None
    y.set_shape([x.shape[0], x.shape[2], x.shape[1] * x.shape[3] if known else None])
    return y
