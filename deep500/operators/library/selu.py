"""ONNX Selu."""

from __future__ import annotations

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Selu"]


class Selu(UnaryOperator):
    r"""Scaled exponential linear unit: :math:`\gamma x` for :math:`x > 0`, else :math:`\gamma \alpha (e^x - 1)`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64. Exponentials are taken of
    negative values only, so that large inputs do not overflow.

    Source: ONNX Selu, version 22.
    """

    def __init__(self, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> None:
        """Set the attributes.

        Args:
            alpha: Factor of the exponential.
            gamma: Factor of everything.

        Raises:
            OperatorError: One of them is not a finite number.
        """
        self.alpha = attributes.real("Selu", "alpha", alpha)
        self.gamma = attributes.real("Selu", "gamma", gamma)

    def value(self, x: Array) -> Array:
        """Return ``gamma x or gamma alpha (exp(x) - 1)``."""
        return np.asarray(
            x.dtype.type(self.gamma) * np.where(x > 0, x, x.dtype.type(self.alpha) * np.expm1(np.minimum(x, 0)))
        )

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``gamma`` or ``gamma alpha exp(x)``."""
        return np.asarray(
            gradient
            * x.dtype.type(self.gamma)
            * np.where(x > 0, x.dtype.type(1), x.dtype.type(self.alpha) * np.exp(np.minimum(x, 0)))
        )
