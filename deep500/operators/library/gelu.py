"""ONNX Gelu."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from deep500.operators import attributes
from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Gelu"]

#: Factors of the approximation by a hyperbolic tangent.
_SCALE, _CUBIC = math.sqrt(2 / math.pi), 0.044715


class Gelu(UnaryOperator):
    r"""Gaussian error linear unit, :math:`y = x\,\Phi(x) = \frac{x}{2} (1 + \operatorname{erf}(x / \sqrt 2))`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64. The approximation is
    :math:`\frac{x}{2} (1 + \tanh(\sqrt{2 / \pi}\,(x + 0.044715\,x^3)))`.

    Source: ONNX Gelu, version 20.
    """

    def __init__(self, *, approximate: str = "none") -> None:
        """Set the attribute.

        Args:
            approximate: ``"none"`` or ``"tanh"``.

        Raises:
            OperatorError: It is neither of them.
        """
        self.approximate = attributes.choice("Gelu", "approximate", approximate, ("none", "tanh"))

    def value(self, x: Array) -> Array:
        """Return ``x`` times the share below it."""
        if self.approximate == "tanh":
            return np.asarray(0.5 * x * (1 + np.tanh(_inner(x))))
        return np.asarray(x * scipy.special.ndtr(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times the share below ``x`` and ``x`` times its density."""
        if self.approximate == "tanh":
            share = np.tanh(_inner(x))
            slope = 0.5 * (1 + share) + 0.5 * x * (1 - share * share) * _SCALE * (1 + 3 * _CUBIC * x * x)
        else:
            slope = scipy.special.ndtr(x) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return np.asarray(gradient * slope)


def _inner(x: Array) -> Array:
    return np.asarray(_SCALE * (x + _CUBIC * x * x * x))
