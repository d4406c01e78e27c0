"""ONNX Softplus."""

from __future__ import annotations

import numpy as np
import scipy.special

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Softplus"]


class Softplus(UnaryOperator):
    r"""Smooth rectifier, :math:`y = \ln(1 + e^x)`, computed so that it does not overflow.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Softplus, version 22.
    """

    def value(self, x: Array) -> Array:
        """Return ``ln(1 + exp(x))``."""
        return np.asarray(np.logaddexp(x, x.dtype.type(0)))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``1 / (1 + exp(-x))``."""
        return np.asarray(gradient * scipy.special.expit(x))
