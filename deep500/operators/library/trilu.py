"""ONNX Trilu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._integers import one_integer
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Trilu"]


class Trilu(SelectingOperator):
    """Keep the upper or the lower triangle of matrices, the rest is 0.

    Inputs: input ``[..., N, M]`` of any dtype; optionally k, an int64, how many diagonals above the main one (below it
    where k is negative) the triangle begins or ends.

    Source: ONNX Trilu, version 14.
    """

    required = ("input",)
    optional = ("k",)

    def __init__(self, *, upper: int = 1) -> None:
        """Set the attribute.

        Args:
            upper: 1 to keep the upper triangle, 0 to keep the lower one.

        Raises:
            OperatorError: It is neither 0 nor 1.
        """
        self.upper = attributes.flag("Trilu", "upper", upper)

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the triangles."""
        k = 0 if others[0] is None else one_integer("Trilu", "k", others[0])
        if data.ndim < 2:
            raise OperatorError(f"Trilu: received a tensor of shape {data.shape}; accepted are matrices [..., N, M].")
        rows, columns = np.arange(data.shape[-2])[:, None], np.arange(data.shape[-1])
        kept = columns - rows >= k if self.upper else columns - rows <= k
        return np.where(kept, data, data.dtype.type(0) if constant is None else constant)
