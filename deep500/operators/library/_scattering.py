"""The frame of operators that write updates into a copy of a tensor."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["REDUCTIONS", "ScatteringOperator", "scattered", "scattered_back"]

#: What becomes of an element and its updates.
REDUCTIONS = ("none", "add", "mul", "max", "min")

_FUNCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class ScatteringOperator(Operator):
    """An operator that replaces elements of a tensor by updates, or reduces them together with the updates.

    Inputs: data of any dtype; indices, integers; updates, of data's dtype. Output: a new tensor of data's shape. Where
    several updates go to one place without a reduction, the last one stays; ONNX leaves it open.
    """

    def __init__(self, *, reduction: str = "none") -> None:
        """Set the attribute.

        Args:
            reduction: ``"none"`` (replace), ``"add"``, ``"mul"``, ``"max"`` or ``"min"``.

        Raises:
            OperatorError: It is none of these.
        """
        self.reduction = attributes.choice(type(self).__name__, "reduction", reduction, REDUCTIONS)

    @abc.abstractmethod
    def places(self, shape: tuple[int, ...], indices: Array) -> Array:
        """Return the flat index of the element to which each update goes.

        Raises:
            OperatorError: Shape and indices do not fit.
        """

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Write the updates.

        Raises:
            OperatorError: Dtypes or shapes do not fit, or an index is out of range.
        """
        data, places, updates = self._read(inputs)
        return (scattered(data, places, updates, self.reduction),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by the data and the updates."""
        data, places, updates = self._read(fwd_inputs)
        if grads[0] is None or not is_float(data.dtype):
            return (None, None, None)
        by_data, by_updates = scattered_back(np.asarray(grads[0]), data, places, updates, self.reduction)
        return returned([by_data, None, by_updates], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Array, Array]:
        name = type(self).__name__
        data, indices, updates = map(present, take_inputs(name, inputs, ["data", "indices", "updates"]))
        places = self.places(data.shape, indices)
        if updates.shape != places.shape or (updates.dtype != data.dtype and data.dtype.kind not in "OU"):
            raise OperatorError(
                f"{name}: received data of {data.dtype}, indices of shape {indices.shape} and updates of "
                f"{updates.dtype} and shape {updates.shape}; accepted are updates of data's dtype and of the shape "
                f"{places.shape}."
            )
        return data, places, updates


def scattered(data: Array, places: Array, updates: Array, reduction: str) -> Array:
    """Return a copy of a tensor with updates written into it.

    Args:
        data: The tensor.
        places: Flat index of the element to which each update goes.
        updates: The updates.
        reduction: One of :data:`REDUCTIONS`.
    """
    result = np.array(data, order="C")
    flat = result.reshape(-1)
    if reduction == "none":
        flat[places.reshape(-1)] = updates.reshape(-1)
    else:
        _FUNCTIONS[reduction].at(flat, places.reshape(-1), updates.reshape(-1))
    return result


def scattered_back(gradient: Array, data: Array, places: Array, updates: Array, reduction: str) -> tuple[Array, Array]:
    """Return the gradients by the tensor and by the updates of :func:`scattered`, in at least float32."""
    wide = compute_dtype(data.dtype)
    g, x = gradient.astype(wide).reshape(-1), data.astype(wide).reshape(-1)
    at, u = places.reshape(-1), updates.astype(wide).reshape(-1)
    if reduction == "add":
        by_data, by_updates = g, g[at]
    elif reduction == "none":
        by_data, by_updates = _replaced_back(g, at)
    elif reduction == "mul":
        by_data, by_updates = _multiplied_back(g, x, at, u)
    else:
        sign = wide.type(1 if reduction == "max" else -1)
        by_data, by_updates = _extreme_back(g, sign * x, at, sign * u)
    return by_data.reshape(data.shape), by_updates.reshape(updates.shape)


def _replaced_back(g: Array, at: Array) -> tuple[Array, Array]:
    # The number of the update that stays at each place.
    owner = np.full(g.shape, -1, np.int64)
    owner[at] = np.arange(at.size)
    taken = owner >= 0
    by_updates = np.zeros(at.shape, g.dtype)
    by_updates[owner[taken]] = g[taken]
    return np.where(taken, g.dtype.type(0), g), by_updates


def _multiplied_back(g: Array, x: Array, at: Array, u: Array) -> tuple[Array, Array]:
    """Products of all factors but one; where one is 0, without dividing by it."""
    zeros, factors = np.zeros(g.shape, np.int64), np.ones_like(g)
    np.add.at(zeros, at, u == 0)
    np.multiply.at(factors, at, np.where(u == 0, u.dtype.type(1), u))
    by_data = np.where(zeros > 0, g.dtype.type(0), g * factors)
    whole = (g * x * factors)[at]
    others = np.where(u == 0, whole, whole / u)
    return by_data, np.where(zeros[at] - (u == 0) > 0, g.dtype.type(0), others)


def _extreme_back(g: Array, x: Array, at: Array, u: Array) -> tuple[Array, Array]:
    """Share the gradient evenly among all that are equal to the largest."""
    largest, count = x.copy(), np.zeros(g.shape, g.dtype)
    np.maximum.at(largest, at, u)
    stays, wins = x == largest, u == largest[at]
    count += stays
    np.add.at(count, at, wins)
    share = g / count
    zero = g.dtype.type(0)
    return np.where(stays, share, zero), np.where(wins, share[at], zero)
