"""ONNX LeakyRelu."""

from __future__ import annotations

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["LeakyRelu"]


class LeakyRelu(UnaryOperator):
    r"""Rectified linear unit that leaks: :math:`y = x` for :math:`x \ge 0`, else :math:`y = \alpha x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64. The slope at 0 is
    :math:`\alpha`, as in PyTorch and TensorFlow.

    Source: ONNX LeakyRelu, version 16.
    """

    def __init__(self, *, alpha: float = 0.01) -> None:
        """Set the attribute.

        Args:
            alpha: Slope below 0.

        Raises:
            OperatorError: It is not a finite number.
        """
        self.alpha = attributes.real("LeakyRelu", "alpha", alpha)

    def value(self, x: Array) -> Array:
        """Return ``x`` or ``alpha x``."""
        return np.where(x >= 0, x, x * x.dtype.type(self.alpha))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times 1 or ``alpha``."""
        return np.where(x > 0, gradient, gradient * gradient.dtype.type(self.alpha))
