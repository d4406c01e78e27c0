"""Sums of 16-bit floats, which some of TensorFlow's kernels for the processor add up in 16 bits."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

__all__ = ["summed_in_float32"]


def summed_in_float32(function: Callable[..., tf.Tensor], *tensors: tf.Tensor) -> tf.Tensor:
    """Return ``function(*tensors)``, on the processor computed in float32 and rounded once where these have 16 bits.

    Kernels for GPUs add up in float32 themselves; those for the processor do so where it has instructions for the type.

    Args:
        function: Returns one tensor, of the type of its arguments.
        *tensors: Floats of one type.
    """
    dtype = tensors[0].dtype
    if dtype not in (tf.float16, tf.bfloat16) or "GPU" in tf.constant(0).device:
        return function(*tensors)
    return tf.cast(function(*(tf.cast(tensor, tf.float32) for tensor in tensors)), dtype)
