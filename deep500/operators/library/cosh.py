"""ONNX Cosh."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Cosh"]


class Cosh(UnaryOperator):
    r"""Hyperbolic cosine, :math:`y = \cosh x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Cosh, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``cosh(x)``."""
        return np.asarray(np.cosh(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``sinh(x)``."""
        return np.asarray(gradient * np.sinh(x))
