"""ONNX Ceil."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Ceil"]


class Ceil(UnaryOperator):
    r"""Round up, :math:`y = \lceil x \rceil`; the slope is 0.

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Ceil, version 13.
    """

    def value(self, x: Array) -> Array:
        """Return ``ceil(x)``."""
        return np.asarray(np.ceil(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return zeros."""
        return np.asarray(np.zeros_like(gradient))
