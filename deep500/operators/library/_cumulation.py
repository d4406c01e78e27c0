"""The frame of running sums and products along an axis."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np

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

__all__ = ["CumulativeOperator"]


class CumulativeOperator(Operator):
    """A running sum or product along an axis.

    Inputs: x, a float or an integer; axis, one integer. Output: x's dtype and shape. 16-bit floats are accumulated in
    float32; integers wrap around.
    """

    def __init__(self, *, exclusive: int = 0, reverse: int = 0) -> None:
        """Set the attributes.

        Args:
            exclusive: 1 if an entry is what comes before it, without itself.
            reverse: 1 to go from the end to the begin.

        Raises:
            OperatorError: One of them is neither 0 nor 1.
        """
        name = type(self).__name__
        self.exclusive = attributes.flag(name, "exclusive", exclusive)
        self.reverse = attributes.flag(name, "reverse", reverse)

    @abc.abstractmethod
    def accumulate(self, x: Array) -> Array:
        """Return the running values along the last axis, of at least one entry, from its begin."""

    @abc.abstractmethod
    def differentiate(self, gradient: Array, x: Array) -> Array:
        """Return the gradient by ``x`` of what :meth:`accumulate` returns."""

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the running values.

        Raises:
            OperatorError: x is not of numbers, or does not have the axis.
        """
        x, axis = self._read(inputs)
        if x.shape[axis] == 0:
            return (x.copy(),)
        y = self.accumulate(self._turned(x, axis).astype(compute_dtype(x.dtype), copy=False))
        return (self._turned_back(y, axis).astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by x."""
        x, axis = self._read(fwd_inputs)
        if grads[0] is None or not is_float(x.dtype):
            return (None, None)
        if x.shape[axis] == 0:
            return returned([np.asarray(grads[0]), None], fwd_inputs)
        wide = compute_dtype(x.dtype)
        gradient, turned = (self._turned(np.asarray(t), axis).astype(wide, copy=False) for t in (grads[0], x))
        return returned([self._turned_back(self.differentiate(gradient, turned), axis), None], fwd_inputs)

    def _turned(self, x: Array, axis: int) -> Array:
        """Return a tensor with the axis last, in the direction in which it is gone along."""
        moved = np.moveaxis(x, axis, -1)
        return moved[..., ::-1] if self.reverse else moved

    def _turned_back(self, x: Array, axis: int) -> Array:
        return np.ascontiguousarray(np.moveaxis(x[..., ::-1] if self.reverse else x, -1, axis))

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, int]:
        name = type(self).__name__
        x, given = map(present, take_inputs(name, inputs, ["x", "axis"]))
        check_dtypes(name, ["x"], [x], "numbers")
        return x, normalise_axis(name, one_integer(name, "axis", given), x.ndim)
