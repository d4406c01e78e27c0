"""Sums of powers and their roots, which poolings and normalisations share."""

from __future__ import annotations

import tensorflow as tf

__all__ = ["powers", "root", "wide_dtype"]


def wide_dtype(x: tf.Tensor) -> tf.DType:
    """Return the dtype in which sums over a tensor are computed: float32 at least."""
    return tf.float64 if x.dtype == tf.float64 else tf.float32


def powers(x: tf.Tensor, p: int) -> tf.Tensor:
    """Return :math:`|x|^p`, in float32 at least."""
    x = tf.cast(x, wide_dtype(x))
    if p == 2:
        return tf.math.square(x)
    return tf.math.abs(x) if p == 1 else tf.math.pow(tf.math.abs(x), tf.cast(p, x.dtype))


def root(sums: tf.Tensor, p: int) -> tf.Tensor:
    """Return :math:`s^{1 / p}`; its gradient at 0 is 0."""
    if p == 1:
        return sums
    zero = tf.equal(sums, 0)
    safe = tf.where(zero, tf.ones_like(sums), sums)
    roots = tf.math.sqrt(safe) if p == 2 else tf.math.pow(safe, tf.constant(1 / p, sums.dtype))
    return tf.where(zero, tf.zeros_like(sums), roots)
