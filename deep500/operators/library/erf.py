"""ONNX Erf."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Erf"]


class Erf(UnaryOperator):
    r"""Error function, :math:`y = \frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt`.

    Input and output have one shape and one dtype: a float or an integer. Integers are computed in
    float64 and rounded towards zero.

    Source: ONNX Erf, version 13.
    """

    accepts = "numbers"

    def value(self, x: Array) -> Array:
        """Return ``erf(x)``."""
        return np.asarray(scipy.special.erf(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``2 / sqrt(pi) exp(-x^2)``."""
        return np.asarray(gradient * gradient.dtype.type(2 / math.sqrt(math.pi)) * np.exp(-x * x))
