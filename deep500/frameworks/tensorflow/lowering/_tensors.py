"""What lowerings do about tensors without elements and about fusions that TensorFlow gets wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

__all__ = ["is_empty", "nothing", "unfused", "with_gradient_of"]


def is_empty(x: tf.Tensor) -> bool:
    """Return whether a tensor has no elements; known while tracing, see ``TensorFlowExecutor``."""
    return x.shape.rank is not None and 0 in x.shape.as_list()


def nothing(shape: Sequence[int], *sources: tf.Tensor) -> tf.Tensor:
    """Return a tensor without elements that was computed from some others, whose gradients are zeros."""
    return tf.broadcast_to(tf.add_n([tf.reduce_sum(source) for source in sources]), shape)


def unfused(x: tf.Tensor) -> tf.Tensor:
    """Return a tensor with which TensorFlow does not fuse the operations that read it."""
    return tf.ensure_shape(x, x.shape)


@tf.custom_gradient  # type: ignore[untyped-decorator]
def with_gradient_of(value: tf.Tensor, differentiable: tf.Tensor) -> Any:
    """Return a value that has the gradient of another tensor of its shape.

    Args:
        value: What TensorFlow computes without a derivative, or with a wrong one.
        differentiable: The same value up to rounding, computed otherwise.
    """
    return tf.identity(value), lambda gradient: (None, gradient)
