"""ONNX Cos."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Cos"]


class Cos(UnaryOperator):
    r"""Cosine, :math:`y = \cos x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Cos, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``cos(x)``."""
        return np.asarray(np.cos(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``-sin(x)``."""
        return np.asarray(-gradient * np.sin(x))
