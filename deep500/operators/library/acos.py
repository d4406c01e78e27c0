"""ONNX Acos."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Acos"]


class Acos(UnaryOperator):
    r"""Inverse cosine, :math:`y = \arccos x`; NaN outside of [-1, 1].

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Acos, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``arccos(x)``."""
        return np.asarray(np.arccos(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``-1 / sqrt(1 - x^2)``."""
        return np.asarray(-gradient / np.sqrt((1 - x) * (1 + x)))
