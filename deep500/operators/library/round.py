"""ONNX Round."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Round"]


class Round(UnaryOperator):
    r"""Round to the nearest integer, halves to even ones; the slope is 0.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Round, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``x, rounded``."""
        return np.asarray(np.rint(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return zeros."""
        return np.asarray(np.zeros_like(gradient))
