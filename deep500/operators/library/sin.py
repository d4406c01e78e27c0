"""ONNX Sin."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Sin"]


class Sin(UnaryOperator):
    r"""Sine, :math:`y = \sin x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Sin, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``sin(x)``."""
        return np.asarray(np.sin(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``cos(x)``."""
        return np.asarray(gradient * np.cos(x))
