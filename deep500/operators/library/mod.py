"""ONNX Mod."""

from __future__ import annotations

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._elementwise import BinaryOperator
from deep500.operators.operator import Array

__all__ = ["Mod"]


class Mod(BinaryOperator):
    r"""Remainder, :math:`c = a - b \lfloor a / b \rfloor`, with broadcasting.

    A, B and C have one dtype, a float or an integer. The remainder has the sign of B; with ``fmod`` the quotient is
    rounded towards zero, and it has the sign of A. Division by zero gives NaN for floats and 0 for integers.

    Source: ONNX Mod, version 28.
    """

    def __init__(self, *, fmod: int = 0) -> None:
        """Set the attribute.

        Args:
            fmod: 1 if the quotient is rounded towards zero, 0 if it is rounded down.

        Raises:
            OperatorError: It is neither 0 nor 1.
        """
        self.fmod = attributes.flag("Mod", "fmod", fmod)

    def value(self, a: Array, b: Array) -> Array:
        """Return the remainder."""
        return np.asarray(np.fmod(a, b) if self.fmod else np.mod(a, b))

    def slopes_times(self, gradient: Array, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        """Return the gradient, and the gradient times the negated quotient, rounded."""
        quotient = (np.trunc if self.fmod else np.floor)(a / b)
        return np.broadcast_to(gradient, c.shape), np.asarray(-gradient * quotient)
