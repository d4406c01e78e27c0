"""ONNX Sinh."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Sinh"]


class Sinh(UnaryOperator):
    r"""Hyperbolic sine, :math:`y = \sinh x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Sinh, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``sinh(x)``."""
        return np.asarray(np.sinh(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``cosh(x)``."""
        return np.asarray(gradient * np.cosh(x))
