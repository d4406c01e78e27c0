"""ONNX Exp."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Exp"]


class Exp(UnaryOperator):
    r"""Exponential, :math:`y = e^x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Exp, version 13.
    """

    def value(self, x: Array) -> Array:
        """Return ``e^x``."""
        return np.asarray(np.exp(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``y``."""
        return gradient * y
