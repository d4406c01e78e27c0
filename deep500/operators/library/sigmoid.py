"""ONNX Sigmoid."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Sigmoid"]


class Sigmoid(UnaryOperator):
    r"""Logistic function, :math:`y = 1 / (1 + e^{-x})`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64. No exponential overflows, and
    y keeps its digits where x is far below 0.

    Source: ONNX Sigmoid, version 13.
    """

    def value(self, x: Array) -> Array:
        """Return ``1 / (1 + e^-x)``."""
        small = np.exp(-np.abs(x))
        return np.asarray(np.where(x >= 0, x.dtype.type(1), small) / (1 + small))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``y (1 - y)``."""
        return np.asarray(gradient * y * (1 - y))
