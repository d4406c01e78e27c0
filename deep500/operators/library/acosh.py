"""ONNX Acosh."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Acosh"]


class Acosh(UnaryOperator):
    r"""Inverse hyperbolic cosine, :math:`y = \operatorname{arcosh} x`; NaN below 1.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Acosh, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``arcosh(x)``."""
        return np.asarray(np.arccosh(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``1 / sqrt(x^2 - 1)``."""
        return np.asarray(gradient / np.sqrt((x - 1) * (x + 1)))
