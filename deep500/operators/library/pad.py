"""ONNX Pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._integers import integer_list
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.library._tensors import as_axes, normalise_axis, present
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Pad"]


class Pad(SelectingOperator):
    """Put entries before and after those of an axis, or cut them off where a pad is negative.

    Inputs: data of any dtype; pads, int64 ``[2 n]``, first those before, then those after; optionally constant_value, a
    scalar of data's dtype (by default 0, false or an empty text); optionally axes, by default all.

    The entries are the constant, the nearest one of the axis (``edge``), its mirror image without the outermost entry
    (``reflect``), or the axis again and again (``wrap``).

    Source: ONNX Pad, version 25.
    """

    required = ("data", "pads")
    optional = ("constant_value", "axes")

    def __init__(self, *, mode: str = "constant") -> None:
        """Set the attribute.

        Args:
            mode: ``"constant"``, ``"reflect"``, ``"edge"`` or ``"wrap"``.

        Raises:
            OperatorError: It is none of these.
        """
        self.mode = attributes.choice("Pad", "mode", mode, ("constant", "reflect", "edge", "wrap"))

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the padded tensor."""
        widths = _widths(data, others)
        if constant is None:
            given = others[1]
            constant = np.zeros((), data.dtype)[()] if given is None else np.asarray(given).reshape(-1)[0]
        result = data
        for axis, (before, after) in enumerate(widths):
            size = result.shape[axis]
            if not before and not after:
                continue
            places = _places(self.mode, size, before, after)
            inside = places >= 0
            if inside.all():
                result = np.take(result, places, axis=axis)
            else:
                taken = np.take(result, places[inside], axis=axis)
                shape = (*result.shape[:axis], places.size, *result.shape[axis + 1 :])
                result = np.full(shape, constant, data.dtype)
                result[(slice(None),) * axis + (inside,)] = taken
        return result.copy() if result is data else result

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by the data and by the constant."""
        by_data, *rest = super().backward(grads, fwd_inputs, fwd_outputs)
        if by_data is not None and len(rest) > 1 and fwd_inputs[2] is not None:
            data, *others = self._read(fwd_inputs)
            value = np.asarray(fwd_inputs[2])
            padded = self._places(present(data), others) < 0
            total = np.asarray(grads[0])[padded].astype(np.float64).sum()
            rest[1] = np.full(value.shape, total).astype(value.dtype)
        return (by_data, *rest)


def _widths(data: Array, others: Sequence[OptionalArray]) -> list[tuple[int, int]]:
    """Return how many entries to put before and after each axis."""
    pads, _, given = others
    widths = integer_list("Pad", "pads", pads)
    if given is None:
        axes: list[int] = list(range(data.ndim))
    else:
        as_axes("Pad", given, data.ndim)  # refuses axes that are there twice
        axes = [normalise_axis("Pad", int(axis), data.ndim) for axis in given.reshape(-1)]
    if len(widths) != 2 * len(axes):
        raise OperatorError(
            f"Pad: received pads {widths} for {len(axes)} axes of data of shape {data.shape}; accepted are two entries "
            f"for each axis."
        )
    result = [(0, 0)] * data.ndim
    for i, axis in enumerate(axes):
        result[axis] = (widths[i], widths[len(axes) + i])
        if data.shape[axis] + sum(result[axis]) < 0:
            raise OperatorError(
                f"Pad: received pads {widths}, which cut more off axis {axis} of {data.shape} than it has."
            )
    return result


def _places(mode: str, size: int, before: int, after: int) -> Array:
    """Return the entry of an axis that each new entry is, -1 for the constant.

    What a negative pad cuts off is not there for the other side either.
    """
    first, last = max(0, -before), size - max(0, -after)
    count = last - first
    places = np.arange(-max(before, 0), count + max(after, 0))
    outside = (places < 0) | (places >= count)
    if mode == "constant" or not outside.any():
        return np.where(outside, -1, places + first)
    if count <= 0:
        raise OperatorError(f"Pad: received an axis without entries; the mode {mode!r} needs one.")
    if mode == "edge":
        inner = np.clip(places, 0, count - 1)
    elif mode == "wrap":
        inner = places % count
    else:
        period = max(2 * (count - 1), 1)
        inner = places % period
        inner = np.where(inner >= count, period - inner, inner)
    return np.asarray(inner + first)
