"""ONNX HardSwish."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["HardSwish"]


class HardSwish(UnaryOperator):
    r"""Swish with a piecewise linear sigmoid, :math:`y = x \max(0, \min(1, x / 6 + 1 / 2))`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64. The slopes at -3 and 3 are
    those on their left and right.

    Source: ONNX HardSwish, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``x max(0, min(1, x / 6 + 1 / 2))``."""
        return np.asarray(x * np.clip(x / 6 + x.dtype.type(0.5), 0, 1))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times 0, ``x / 3 + 1 / 2`` or 1."""
        inner = gradient * (x / 3 + x.dtype.type(0.5))
        return np.where(x >= 3, gradient, np.where(x <= -3, gradient.dtype.type(0), inner))
