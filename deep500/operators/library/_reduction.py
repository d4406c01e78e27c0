"""The frame of operators that reduce over axes."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._tensors import (
    as_axes,
    check_dtypes,
    compute_dtype,
    is_float,
    present,
    returned,
    take_inputs,
)
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["ExtremeReduction", "ReductionOperator", "highest", "lowest"]


class ReductionOperator(Operator):
    """A reduction over the axes that the second input holds.

    Inputs: data, a float or an integer; optionally axes, int64 ``[n]``. Output: data's dtype. With no axes to reduce
    over, everything but the reduction is done: a sum of squares is the square.
    """

    #: Which dtypes the operator takes, and whether bool as well.
    accepts: Literal["floats", "signed", "numbers"] = "numbers"
    accepts_bool = False

    def __init__(self, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> None:
        """Set the attributes.

        Args:
            keepdims: 1 to keep reduced axes with the size 1, 0 to drop them.
            noop_with_empty_axes: What no axes mean: 0, reduce over all; 1, return the data.

        Raises:
            OperatorError: An attribute is neither 0 nor 1.
        """
        name = type(self).__name__
        self.keepdims = attributes.flag(name, "keepdims", keepdims)
        self.noop_with_empty_axes = attributes.flag(name, "noop_with_empty_axes", noop_with_empty_axes)

    @abc.abstractmethod
    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the reduction, reduced axes kept; ``count`` elements are reduced to one."""

    @abc.abstractmethod
    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient by the data, or what broadcasts to it.

        Args:
            gradient: The gradient by ``y``.
            data: The data.
            y: The reduction, reduced axes kept.
            axes: The axes.
            count: How many elements were reduced to one.
        """

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the reduction.

        Raises:
            OperatorError: The data is not of numbers, or an axis is out of range or there twice.
        """
        data, axes, count = self._read(inputs)
        result = np.asarray(self.reduce(data, axes, count)).astype(data.dtype, copy=False)
        return (result if self.keepdims else result.reshape(_without(data.shape, axes)),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the data."""
        data, axes, count = self._read(fwd_inputs)
        if grads[0] is None or not is_float(data.dtype):
            return (None,) * len(fwd_inputs)
        kept = tuple(1 if i in axes else size for i, size in enumerate(data.shape))
        wide = compute_dtype(data.dtype)
        known = fwd_outputs[0] if fwd_outputs else None
        result = self.reduce(data, axes, count) if known is None else known
        gradient, y = (np.asarray(t).reshape(kept).astype(wide, copy=False) for t in (grads[0], result))
        slope = self.slope_times(gradient, data.astype(wide, copy=False), y, axes, count)
        by_data = np.broadcast_to(slope, data.shape).astype(data.dtype, copy=True)
        return returned([by_data, None], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, tuple[int, ...], int]:
        """Check the inputs; return the data, the axes, and how many elements become one."""
        name = type(self).__name__
        received = take_inputs(name, inputs, ["data"], ["axes"])
        data, given = present(received[0]), received[1]
        if not (self.accepts_bool and data.dtype == np.bool_):
            check_dtypes(name, ["data"], [data], self.accepts)
        if given is not None and given.size:
            axes = as_axes(name, given, data.ndim)
        else:
            axes = () if self.noop_with_empty_axes else tuple(range(data.ndim))
        return data, axes, math.prod(data.shape[axis] for axis in axes)


class ExtremeReduction(ReductionOperator):
    """The largest or the smallest element; elements that are equal to it share the gradient evenly."""

    accepts_bool = True

    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient where the element is what the result is."""
        chosen = data == y
        share = np.asarray(gradient / np.sum(chosen, axis=axes, keepdims=True, dtype=gradient.dtype))
        return np.where(chosen, share, gradient.dtype.type(0))


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return what is below every value of a dtype: minus infinity, the smallest integer, or false."""
    if is_float(dtype):
        return -np.inf
    return False if dtype == np.bool_ else np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """Return what is above every value of a dtype: infinity, the largest integer, or true."""
    if is_float(dtype):
        return np.inf
    return True if dtype == np.bool_ else np.iinfo(dtype).max


def _without(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for i, size in enumerate(shape) if i not in axes)
