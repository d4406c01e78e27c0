"""ONNX Tan."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Tan"]


class Tan(UnaryOperator):
    r"""Tangent, :math:`y = \tan x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Tan, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``tan(x)``."""
        return np.asarray(np.tan(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``1 + y^2``."""
        return np.asarray(gradient * (1 + y * y))
