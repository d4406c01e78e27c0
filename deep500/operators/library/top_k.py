"""ONNX TopK."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._integers import one_integer
from deep500.operators.library._tensors import (
    check_dtypes,
    compute_dtype,
    is_float,
    normalise_axis,
    present,
    returned,
    take_inputs,
)
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["TopK"]


class TopK(Operator):
    """The k largest or smallest elements along an axis, and where they are.

    Inputs: X, a float or an integer; K, int64 ``[1]``. Outputs: Values, of X's dtype, and Indices, int64, both with k
    entries along the axis, in descending order (ascending, of the smallest ones). Of equal elements the first one comes
    first; NaN is larger than everything.

    Source: ONNX TopK, version 24.
    """

    def __init__(self, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> None:
        """Set the attributes.

        Args:
            axis: The axis; negative values count from the back.
            largest: 1 for the largest, 0 for the smallest elements.
            sorted: 0 where the order of the outputs does not matter; they are sorted in any case.

        Raises:
            OperatorError: The axis is no integer, or one of the others neither 0 nor 1.
        """
        self.axis = attributes.integer("TopK", "axis", axis)
        self.largest = attributes.flag("TopK", "largest", largest)
        self.sorted = attributes.flag("TopK", "sorted", sorted)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute values and indices.

        Raises:
            OperatorError: X is not of numbers, or does not have k elements along the axis.
        """
        x, axis, indices = self._read(inputs)
        return np.take_along_axis(x, indices, axis), indices

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by X: those by the values, at their places."""
        x, axis, indices = self._read(fwd_inputs)
        if grads[0] is None or not is_float(x.dtype):
            return (None, None)
        by_x = np.zeros(x.shape, x.dtype)
        np.put_along_axis(by_x, indices, np.asarray(grads[0]), axis)
        return returned([by_x, None], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, int, Array]:
        """Check the inputs; return X, the axis and the indices."""
        x, given = map(present, take_inputs("TopK", inputs, ["X", "K"]))
        check_dtypes("TopK", ["X"], [x], "numbers")
        axis, k = normalise_axis("TopK", self.axis, x.ndim), one_integer("TopK", "K", given, minimum=0)
        size = x.shape[axis]
        if k > size:
            raise OperatorError(f"TopK: K is {k} for an axis of the size {size}; accepted are integers up to that.")
        wide = x.astype(compute_dtype(x.dtype), copy=False)
        if self.largest:
            # A stable ascending sort of the reversed axis, read from its end: equal elements in their first order.
            order = size - 1 - np.flip(np.argsort(np.flip(wide, axis), axis=axis, kind="stable"), axis)
        else:
            order = np.argsort(wide, axis=axis, kind="stable")
        return x, axis, np.take(order, np.arange(k), axis=axis).astype(np.int64)
