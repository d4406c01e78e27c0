"""ONNX Compress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.library._tensors import normalise_axis, present
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Compress"]


class Compress(SelectingOperator):
    """Take the slices of an axis for which a condition is true; without an axis, the elements in their order.

    Inputs: input of any dtype; condition, bool ``[n]``, n at most the size of the axis; what lies beyond is dropped.

    Source: ONNX Compress, version 28.
    """

    required = ("input", "condition")

    def __init__(self, *, axis: int | None = None) -> None:
        """Set the attribute.

        Args:
            axis: The axis; negative values count from the back.

        Raises:
            OperatorError: It is not an integer.
        """
        self.axis = None if axis is None else attributes.integer("Compress", "axis", axis)

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return what is taken."""
        condition = present(others[0])
        axis = 0 if self.axis is None else normalise_axis("Compress", self.axis, data.ndim)
        tensor = data.reshape(-1) if self.axis is None else data
        if condition.dtype != np.bool_ or condition.ndim != 1 or condition.size > tensor.shape[axis]:
            raise OperatorError(
                f"Compress: received a condition of {condition.dtype} and shape {condition.shape}; accepted is bool of "
                f"one dimension with at most {tensor.shape[axis]} entries."
            )
        return np.take(tensor, np.flatnonzero(condition), axis=axis)
