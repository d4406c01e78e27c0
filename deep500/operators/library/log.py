"""ONNX Log."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Log"]


class Log(UnaryOperator):
    r"""Natural logarithm, :math:`y = \ln x`.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64. 0 gives minus
    infinity, negative numbers NaN.

    Source: ONNX Log, version 13.
    """

    def value(self, x: Array) -> Array:
        """Return ``ln x``."""
        return np.asarray(np.log(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return the gradient times ``1 / x``."""
        return gradient / x
