"""ONNX Neg."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Neg"]


class Neg(UnaryOperator):
    r"""Negative, :math:`y = -x`.

    Input and output have one shape and one dtype: a float or a signed integer.

    Source: ONNX Neg, version 13.
    """

    accepts = "signed"

    def value(self, x: Array) -> Array:
        """Return ``-x``."""
        return np.negative(x)

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``-1``."""
        return np.negative(gradient)
