"""ONNX Sign."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import UnaryOperator
from deep500.operators.operator import Array

__all__ = ["Sign"]


class Sign(UnaryOperator):
    r"""Sign: 1, 0 or -1; the slope is 0.

    Input and output have one shape and one dtype: a float or an integer.

    Source: ONNX Sign, version 13.
    """

    accepts = "numbers"

    def value(self, x: Array) -> Array:
        """Return ``the sign of x``."""
        return np.asarray(np.sign(x))

    def slope_times(self, gradient: Array, x: Array, y: Array) -> Array:
        """Return zeros."""
        return np.asarray(np.zeros_like(gradient))
