"""ONNX Tanh."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Tanh"]


class Tanh(UnaryOperator):
    r"""Hyperbolic tangent, :math:`y = \tanh x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Tanh, version 13.
    """

    def value(self, x: Array) -> Array:
        """Return ``tanh(x)``."""
        return np.asarray(np.tanh(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``1 - y^2``."""
        return np.asarray(gradient * (1 - y * y))
