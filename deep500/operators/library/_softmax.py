"""Softmax and its logarithm, computed so that exponentials do not overflow."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._tensors import (
    check_dtypes,
    compute_dtype,
    normalise_axis,
    present,
    returned,
    take_inputs,
)
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["AlongAxis", "log_softmax", "softmax"]


class AlongAxis(Operator):
    """A function of the values along one axis, computed in at least float32; one input, one output of its shape."""

    def __init__(self, *, axis: int = -1) -> None:
        """Set the attribute.

        Args:
            axis: The axis; negative values count from the back.

        Raises:
            OperatorError: It is not an integer.
        """
        self.axis = attributes.integer(type(self).__name__, "axis", axis)

    @abc.abstractmethod
    def function(self, x: Array, axis: int) -> Array:
        """Return the values for floats ``x`` along an axis counted from the front."""

    @abc.abstractmethod
    def gradient(self, gradient: Array, y: Array) -> Array:
        """Return the gradient by the input from that by the output ``y``, along ``self.axis``."""

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the output.

        Raises:
            OperatorError: The input is not of floats or does not have the axis.
        """
        name = type(self).__name__
        x = present(take_inputs(name, inputs, ["input"])[0])
        check_dtypes(name, ["input"], [x], "floats")
        axis = normalise_axis(name, self.axis, x.ndim)
        return (self.function(x.astype(compute_dtype(x.dtype), copy=False), axis).astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the input."""
        if grads[0] is None:
            return (None,)
        y = np.asarray(fwd_outputs[0])
        wide = compute_dtype(y.dtype)
        y, gradient = y.astype(wide, copy=False), np.asarray(grads[0]).astype(wide, copy=False)
        return returned([self.gradient(gradient, y)], fwd_inputs)


def log_softmax(x: Array, axis: int) -> Array:
    r"""Return :math:`x - m - \log \sum e^{x - m}` with the maximum m along an axis.

    Args:
        x: Floats.
        axis: The axis, counted from the front.

    Returns:
        A new tensor of the same shape and dtype.
    """
    if x.size == 0:
        return x.copy()
    shifted = x - x.max(axis=axis, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return np.asarray(shifted)


def softmax(x: Array, axis: int) -> Array:
    r"""Return :math:`e^{x - m} / \sum e^{x - m}` with the maximum m along an axis.

    Args:
        x: Floats.
        axis: The axis, counted from the front.

    Returns:
        A new tensor of the same shape and dtype.
    """
    if x.size == 0:
        return x.copy()
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    powers /= powers.sum(axis=axis, keepdims=True)
    return np.asarray(powers)
