"""ONNX Div."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import BinaryOperator
from deep500.operators.library._integers import truncated_quotient
from deep500.operators.library._tensors import is_float
from deep500.operators.operator import Array

__all__ = ["Div"]


class Div(BinaryOperator):
    """Quotient, ``C = A / B``, with broadcasting.

    A, B and C have one dtype, a float or an integer; integer quotients are rounded towards zero. Division by zero gives
    infinity or NaN for floats; ONNX leaves it open for integers, here it gives 0.

    Source: ONNX Div, version 14.
    """

    def value(self, a: Array, b: Array) -> Array:
        """Return ``a / b``."""
        return np.true_divide(a, b) if is_float(a.dtype) else truncated_quotient(a, b)

    def slopes_times(self, gradient: Array, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        """Return the gradient times ``1 / b`` and times ``-a / b^2``."""
        by_a = np.asarray(gradient / b)
        return by_a, -by_a * (a / b)
