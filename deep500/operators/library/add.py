"""ONNX Add."""

from __future__ import annotations

from deep500.operators.library._elementwise import BinaryOperator
from deep500.operators.operator import Array

__all__ = ["Add"]


class Add(BinaryOperator):
    """Sum, ``C = A + B``, with broadcasting.

    A, B and C have one dtype, a float or an integer; integers wrap around.

    Source: ONNX Add, version 14.
    """

    def value(self, a: Array, b: Array) -> Array:
        """Return ``a + b``."""
        return a + b

    def slopes_times(self, gradient: Array, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        """Return the gradient, twice."""
        return gradient, gradient
