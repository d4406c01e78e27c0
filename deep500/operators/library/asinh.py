"""ONNX Asinh."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Asinh"]


class Asinh(UnaryOperator):
    r"""Inverse hyperbolic sine, :math:`y = \operatorname{arsinh} x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Asinh, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``arsinh(x)``."""
        return np.asarray(np.arcsinh(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``1 / sqrt(x^2 + 1)``."""
        return np.asarray(gradient / np.hypot(x, 1))
