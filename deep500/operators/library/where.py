"""ONNX Where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._broadcast import broadcast_shape, unbroadcast
from deep500.operators.library._tensors import compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Where"]


class Where(Operator):
    """Choose between two tensors, element by element, with broadcasting.

    Inputs: condition, bool; X and Y of one dtype (any). Output: X where the condition is true, else Y.

    Source: ONNX Where, version 16.
    """

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Choose.

        Raises:
            OperatorError: The condition is not of bool, the dtypes of X and Y differ, or the shapes do not broadcast.
        """
        condition, x, y = map(present, take_inputs("Where", inputs, ["condition", "X", "Y"]))
        if condition.dtype != np.bool_ or x.dtype.kind != y.dtype.kind or (x.dtype.kind != "U" and x.dtype != y.dtype):
            raise OperatorError(
                f"Where: received a condition of {condition.dtype}, X of {x.dtype} and Y of {y.dtype}; accepted are "
                f"bool, and X and Y of one dtype (Cast converts)."
            )
        broadcast_shape("Where", condition.shape, x.shape, y.shape)
        return (np.where(condition, x, y),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by X and Y: that by the output where it was chosen from them, else 0."""
        condition, x, y = (np.asarray(t) for t in fwd_inputs)
        if grads[0] is None or not is_float(x.dtype):
            return (None, None, None)
        gradient = np.asarray(grads[0]).astype(compute_dtype(x.dtype), copy=False)
        zero = gradient.dtype.type(0)
        by_x, by_y = np.where(condition, gradient, zero), np.where(condition, zero, gradient)
        return returned([None, unbroadcast(by_x, x.shape), unbroadcast(by_y, y.shape)], fwd_inputs)
