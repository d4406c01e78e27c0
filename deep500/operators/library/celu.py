"""ONNX Celu."""

from __future__ import annotations

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Celu"]


class Celu(UnaryOperator):
    r"""Continuously differentiable exponential linear unit: :math:`\max(0, x) + \min(0, \alpha (e^{x / \alpha} - 1))`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64. Exponentials are taken of
    negative values only, so that large inputs do not overflow.

    Source: ONNX Celu, version 28.
    """

    def __init__(self, *, alpha: float = 1.0) -> None:
        """Set the attribute.

        Args:
            alpha: What y tends to for large negative x, negated.

        Raises:
            OperatorError: It is not a finite number.
        """
        self.alpha = attributes.real("Celu", "alpha", alpha)

    def value(self, x: Array) -> Array:
        """Return ``x or alpha (exp(x / alpha) - 1)``."""
        return np.asarray(
            np.where(x >= 0, x, x.dtype.type(self.alpha) * np.expm1(np.minimum(x, 0) / x.dtype.type(self.alpha)))
        )

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times 1 or ``exp(x / alpha)``."""
        return np.asarray(gradient * np.exp(np.minimum(x, 0) / x.dtype.type(self.alpha)))
