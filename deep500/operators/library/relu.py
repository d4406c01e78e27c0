"""ONNX Relu."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Relu"]


class Relu(UnaryOperator):
    r"""Rectified linear unit, :math:`y = \max(0, x)`; the slope at 0 is 0.

    X and Y have one shape and one dtype: float16, bfloat16, float32, float64, int8, int16, int32 or int64. NaN stays
    NaN, and receives no gradient.

    Source: ONNX Relu, version 14.
    """

    accepts = "signed"

    def value(self, x: Array) -> Array:
        """Return ``max(0, x)``."""
        return np.asarray(np.maximum(x, x.dtype.type(0)))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient where ``x > 0``, else 0."""
        return np.where(y > 0, gradient, gradient.dtype.type(0))
