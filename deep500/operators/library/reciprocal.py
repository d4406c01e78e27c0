"""ONNX Reciprocal."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Reciprocal"]


class Reciprocal(UnaryOperator):
    r"""Reciprocal, :math:`y = 1 / x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Reciprocal, version 13.
    """

    def value(self, x: Array) -> Array:
        """Return ``1 / x``."""
        return np.asarray(1 / x)

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``-1 / x^2``."""
        return np.asarray(-gradient * y * y)
