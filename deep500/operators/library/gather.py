"""ONNX Gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._selection import SelectingOperator, checked_indices
from deep500.operators.library._tensors import normalise_axis, present
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Gather"]


class Gather(SelectingOperator):
    r"""Take slices of an axis, :math:`y_{\ldots i \ldots} = x_{\ldots k_i \ldots}`.

    Inputs: data of any dtype, of rank r >= 1; indices, integers of any rank q, negative ones counted from the back.
    Output: rank r + q - 1, the shape of the indices in place of the axis.

    Source: ONNX Gather, version 13.
    """

    required = ("data", "indices")

    def __init__(self, *, axis: int = 0) -> None:
        """Set the attribute.

        Args:
            axis: The axis; negative values count from the back.

        Raises:
            OperatorError: It is not an integer.
        """
        self.axis = attributes.integer("Gather", "axis", axis)

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the slices."""
        axis = normalise_axis("Gather", self.axis, data.ndim)
        return np.take(data, checked_indices("Gather", present(others[0]), data.shape[axis]), axis=axis)
