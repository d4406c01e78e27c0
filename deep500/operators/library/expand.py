"""ONNX Expand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.operators.library._broadcast import broadcast_shape
from deep500.operators.library._integers import integer_list
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Expand"]


class Expand(SelectingOperator):
    """Repeat a tensor so that it has the shape that it and a given shape broadcast to.

    Inputs: input, of any dtype; shape, int64 ``[n]``. The output may have another shape than the given one: sizes 1 of
    it keep those of the input.

    Source: ONNX Expand, version 13.
    """

    required = ("input", "shape")

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the repeated tensor."""
        wanted = tuple(integer_list("Expand", "shape", others[0], minimum=0))
        return np.broadcast_to(data, broadcast_shape("Expand", data.shape, wanted)).copy()
