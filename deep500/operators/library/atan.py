"""ONNX Atan."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Atan"]


class Atan(UnaryOperator):
    r"""Inverse tangent, :math:`y = \arctan x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Atan, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``arctan(x)``."""
        return np.asarray(np.arctan(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``1 / (1 + x^2)``."""
        return np.asarray(gradient / (1 + x * x))
