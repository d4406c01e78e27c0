"""ONNX Sqrt."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Sqrt"]


class Sqrt(UnaryOperator):
    r"""Square root, :math:`y = \sqrt{x}`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64. Negative numbers give
    NaN; the slope at 0 is infinite.

    Source: ONNX Sqrt, version 13.
    """

    def value(self, x: Array) -> Array:
        """Return ``sqrt(x)``."""
        return np.asarray(np.sqrt(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``1 / (2 y)``."""
        return np.asarray(gradient / (2 * y))
