"""ONNX GatherElements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._places import element_places
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.library._tensors import present
from deep500.operators.operator import Array, OptionalArray

__all__ = ["GatherElements"]


class GatherElements(SelectingOperator):
    r"""Take elements along an axis, :math:`y_{i j k} = x_{n_{i j k} j k}` for axis 0.

    Inputs: data of any dtype; indices, integers of the same rank, whose sizes of the other axes are at most those of
    the data. Output: the shape of the indices.

    Source: ONNX GatherElements, version 13.
    """

    required = ("data", "indices")

    def __init__(self, *, axis: int = 0) -> None:
        """Set the attribute.

        Args:
            axis: The axis; negative values count from the back.

        Raises:
            OperatorError: It is not an integer.
        """
        self.axis = attributes.integer("GatherElements", "axis", axis)

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the elements."""
        places = element_places("GatherElements", data.shape, present(others[0]), self.axis)
        return np.asarray(data.reshape(-1)[places])
