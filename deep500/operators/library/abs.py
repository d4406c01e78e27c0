"""ONNX Abs."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Abs"]


class Abs(UnaryOperator):
    r"""Absolute value, :math:`y = |x|`; the slope at 0 is 0.

    Input and output have one shape and one dtype: a float or an integer.

    Source: ONNX Abs, version 13.
    """

    accepts = "numbers"

    def value(self, x: Array) -> Array:
        """Return ``|x|``."""
        return np.asarray(np.abs(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``the sign of x``."""
        return gradient * np.sign(x)
