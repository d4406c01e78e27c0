"""ONNX Tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._integers import integer_list
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Tile"]


class Tile(SelectingOperator):
    """Lay copies of a tensor side by side.

    Inputs: input, of any dtype; repeats, int64 ``[r]``, how many copies there are along each axis.

    Source: ONNX Tile, version 13.
    """

    required = ("input", "repeats")

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the copies."""
        repeats = integer_list("Tile", "repeats", others[0], minimum=0)
        if len(repeats) != data.ndim:
            raise OperatorError(
                f"Tile: received repeats {repeats} for a tensor of shape {data.shape}; accepted are {data.ndim}."
            )
        return np.tile(data, repeats)
