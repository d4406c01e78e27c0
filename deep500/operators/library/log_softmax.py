"""ONNX LogSoftmax."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._softmax import AlongAxis, log_softmax
from deep500.operators.operator import Array

__all__ = ["LogSoftmax"]


class LogSoftmax(AlongAxis):
    r"""Logarithm of the softmax along an axis.

    .. math::
        y_i = x_i - \log \sum_j e^{x_j}

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64; 16-bit floats are computed in
    float32. The maximum is subtracted first, and no softmax is computed whose logarithm could be that of 0. A NaN or
    plus infinity makes all values along the axis NaN, as does an axis of nothing but minus infinity.

    Source: ONNX LogSoftmax, version 13.
    """

    def function(self, x: Array, axis: int) -> Array:
        """Return the logarithm of the softmax."""
        return log_softmax(x, axis)

    def gradient(self, gradient: Array, y: Array) -> Array:
        r"""Return :math:`g_i - e^{y_i} \sum_j g_j`."""
        result: Array = gradient - np.exp(y) * gradient.sum(axis=self.axis, keepdims=True)
        return result
