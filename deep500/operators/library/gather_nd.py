"""ONNX GatherND."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._places import slice_places
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.library._tensors import present
from deep500.operators.operator import Array, OptionalArray

__all__ = ["GatherND"]


class GatherND(SelectingOperator):
    r"""Take elements or slices at places that are given by several indices each.

    Inputs: data of any dtype, of rank r >= 1; indices, integers ``[..., n]``, each row the first n indices (behind the
    batch axes) of a slice. Output: the slices, in the shape of the indices without their last axis.

    Source: ONNX GatherND, version 13.
    """

    required = ("data", "indices")

    def __init__(self, *, batch_dims: int = 0) -> None:
        """Set the attribute.

        Args:
            batch_dims: Number of first axes that data and indices have in common.

        Raises:
            OperatorError: It is not an integer from 0 on.
        """
        self.batch_dims = attributes.integer("GatherND", "batch_dims", batch_dims, minimum=0)

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the slices."""
        places = slice_places("GatherND", data.shape, present(others[0]), self.batch_dims)
        return np.asarray(data.reshape(-1)[places])
