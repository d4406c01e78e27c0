"""ONNX Unsqueeze."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.operators.library._movement import ReshapingOperator
from deep500.operators.library._tensors import as_axes, present, take_inputs
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Unsqueeze"]


class Unsqueeze(ReshapingOperator):
    """Insert axes of the size 1.

    Inputs: data of any dtype and shape; axes, int64 ``[n]``, where the output has the new axes, in any order. Output: a
    view where possible.

    Source: ONNX Unsqueeze, version 25.
    """

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Insert the axes.

        Raises:
            OperatorError: An axis is out of range for the output, or there twice.
        """
        data, given = map(present, take_inputs("Unsqueeze", inputs, ["data", "axes"]))
        return (np.expand_dims(data, as_axes("Unsqueeze", given, data.ndim + given.size)),)
