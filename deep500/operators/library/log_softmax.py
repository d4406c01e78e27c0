"""ONNX LogSoftmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._softmax import log_softmax
from deep500.operators.library._tensors import (
    check_dtypes,
    compute_dtype,
    normalise_axis,
    present,
    returned,
    take_inputs,
)
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["LogSoftmax"]


class LogSoftmax(Operator):
    r"""Logarithm of the softmax along an axis.

    .. math::
        y_i = x_i - \log \sum_j e^{x_j}

    Input and output have one shape and one dtype: float16, bfloat16, float32 or float64; 16-bit floats are computed in
    float32. The maximum is subtracted first, and no softmax is computed whose logarithm could be that of 0. A NaN or
    plus infinity makes all values along the axis NaN, as does an axis of nothing but minus infinity.

    Source: ONNX LogSoftmax, version 13.
    """

    def __init__(self, *, axis: int = -1) -> None:
        """Set the attribute.

        Args:
            axis: The axis; negative values count from the back.

        Raises:
            OperatorError: It is not an integer.
        """
        self.axis = attributes.integer("LogSoftmax", "axis", axis)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the logarithm of the softmax.

        Raises:
            OperatorError: The input is not of floats or does not have the axis.
        """
        x = present(take_inputs("LogSoftmax", inputs, ["input"])[0])
        check_dtypes("LogSoftmax", ["input"], [x], "floats")
        axis = normalise_axis("LogSoftmax", self.axis, x.ndim)
        return (log_softmax(x.astype(compute_dtype(x.dtype), copy=False), axis).astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        r"""Compute the gradient by the input, :math:`g_i - e^{y_i} \sum_j g_j`."""
        if grads[0] is None:
            return (None,)
        y = np.asarray(fwd_outputs[0])
        wide = compute_dtype(y.dtype)
        y, gradient = y.astype(wide, copy=False), np.asarray(grads[0]).astype(wide, copy=False)
        return returned([gradient - np.exp(y) * gradient.sum(axis=self.axis, keepdims=True)], fwd_inputs)
