"""The functions of update rules on TensorFlow's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from deep500.networks.tensor_functions import TensorFunctions

__all__ = ["functions"]


class TensorFlowFunctions:
    """What :class:`deep500.networks.tensor_functions.TensorFunctions` describes, on ``tf.Tensor``."""

    def sqrt(self, x: Any) -> Any:
        """Return the square root of each element."""
        return tf.sqrt(x)

    def absolute(self, x: Any) -> Any:
        """Return the absolute value of each element."""
        return tf.abs(x)

    def sign(self, x: Any) -> Any:
        """Return -1, 0 or 1 for each element."""
        return tf.sign(x)

    def maximum(self, x: Any, y: Any) -> Any:
        """Return the larger of two elements at each place; NaN where one is."""
        return tf.maximum(x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        """Return the smaller of two elements at each place; NaN where one is."""
        return tf.minimum(x, y)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Return ``x`` where a condition holds and ``y`` elsewhere."""
        return tf.where(condition, x, y)

    def sum(self, x: Any) -> Any:
        """Return the sum of all elements, a scalar tensor, added up at least in float32."""
        return tf.cast(tf.reduce_sum(_wide(x)), x.dtype)

    def norm(self, x: Any) -> Any:
        """Return the 2-norm of all elements, added up at least in float32."""
        return tf.cast(tf.sqrt(tf.reduce_sum(tf.square(_wide(x)))), x.dtype)

    def matmul(self, x: Any, y: Any) -> Any:
        """Return the product of two matrices."""
        return tf.matmul(x, y)

    def transpose(self, x: Any, permutation: Sequence[int]) -> Any:
        """Return a tensor whose axis ``i`` is axis ``permutation[i]`` of ``x``."""
        return tf.transpose(x, tuple(permutation))

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """Return the elements, in their order, in another shape; one size may be -1."""
        return tf.reshape(x, tuple(shape))

    def zeros_like(self, x: Any) -> Any:
        """Return zeros of the shape and dtype of a tensor."""
        return tf.zeros_like(x)

    def ones_like(self, x: Any) -> Any:
        """Return ones of the shape and dtype of a tensor."""
        return tf.ones_like(x)

    def global_norm(self, tensors: Sequence[Any]) -> Any:
        """Return the 2-norm of all elements of all tensors together, added up in float64."""
        return tf.sqrt(tf.add_n([tf.reduce_sum(tf.square(tf.cast(x, tf.float64))) for x in tensors]))

    def cast_like(self, x: Any, like: Any) -> Any:
        """Return a tensor in the dtype of another one."""
        # A number would become float32 on the way.
        return tf.cast(x, like.dtype) if tf.is_tensor(x) else tf.constant(x, like.dtype)


def _wide(x: Any) -> Any:
    """Return a tensor in the dtype in which elements are added up: no narrower float than float32."""
    return tf.cast(x, tf.float32) if x.dtype.size < 4 else x


functions: TensorFunctions = TensorFlowFunctions()
