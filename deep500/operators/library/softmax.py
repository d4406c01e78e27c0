"""ONNX Softmax."""

from __future__ import annotations

from deep500.operators.library._softmax import AlongAxis, softmax
from deep500.operators.operator import Array

__all__ = ["Softmax"]


class Softmax(AlongAxis):
    r"""Normalised exponentials along an axis.

    .. math::
        y_i = \frac{e^{x_i}}{\sum_j e^{x_j}}

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64; 16-bit floats are computed in
    float32. The maximum is subtracted first, so that large values do not overflow. A NaN or plus infinity makes all
    values along the axis NaN, as does an axis of nothing but minus infinity.

    Source: ONNX Softmax, version 13.
    """

    def function(self, x: Array, axis: int) -> Array:
        """Return the normalised exponentials."""
        return softmax(x, axis)

    def gradient(self, gradient: Array, y: Array) -> Array:
        r"""Return :math:`y_i (g_i - \sum_j g_j y_j)`."""
        result: Array = y * (gradient - (gradient * y).sum(axis=self.axis, keepdims=True))
        return result
