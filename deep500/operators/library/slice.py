"""ONNX Slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deep500.core.errors import OperatorError
from deep500.operators.library._integers import integer_list
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.library._tensors import normalise_axis
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Slice"]


class Slice(SelectingOperator):
    """Cut a range out of some axes, as Python's ``x[start:end:step]`` does for limits within the axis.

    Inputs: data of any dtype; starts and ends, integers ``[n]``, negative ones counted from the back; optionally axes
    (by default the first n) and steps (by default 1). Limits beyond an axis are its ends; for negative steps, starts
    are its first or last entry.

    Source: ONNX Slice, version 13.
    """

    required = ("data", "starts", "ends")
    optional = ("axes", "steps")

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the cut."""
        starts, ends = (integer_list("Slice", n, x) for n, x in zip(("starts", "ends"), others))
        axes = list(range(len(starts))) if others[2] is None else integer_list("Slice", "axes", others[2])
        steps = [1] * len(starts) if others[3] is None else integer_list("Slice", "steps", others[3])
        if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
            raise OperatorError(
                f"Slice: received starts {starts}, ends {ends}, axes {axes} and steps {steps}; accepted are as many "
                f"entries in each, and steps other than 0."
            )
        parts = [slice(None)] * data.ndim
        for start, end, axis, step in zip(starts, ends, axes, steps):
            place = normalise_axis("Slice", axis, data.ndim, name="an entry of axes")
            parts[place] = _range(start, end, step, data.shape[place])
        return data[tuple(parts)]


def _range(start: int, end: int, step: int, size: int) -> slice:
    """Return a range as Python has it.

    What lies before an axis is its first entry for a start, also where the step is negative, and for an end then what
    is before the first entry, -1, which Python would count from the back.
    """
    if size == 0:
        return slice(0, 0)
    start, end = (limit + size if limit < 0 else limit for limit in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    first, last = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(first, None if last < 0 else last, step)
