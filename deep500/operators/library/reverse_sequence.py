"""ONNX ReverseSequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._integers import integer_list
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.library._tensors import normalise_axis
from deep500.operators.operator import Array, OptionalArray

__all__ = ["ReverseSequence"]


class ReverseSequence(SelectingOperator):
    """Reverse the first entries of each sequence of a batch.

    Inputs: input of any dtype, of rank r >= 2; sequence_lens, int64 ``[batch]``, how many entries to reverse.

    Source: ONNX ReverseSequence, version 28.
    """

    required = ("input", "sequence_lens")

    def __init__(self, *, batch_axis: int = 1, time_axis: int = 0) -> None:
        """Set the attributes.

        Args:
            batch_axis: The axis of the sequences.
            time_axis: The axis of their entries.

        Raises:
            OperatorError: One of them is not an integer.
        """
        self.batch_axis = attributes.integer("ReverseSequence", "batch_axis", batch_axis)
        self.time_axis = attributes.integer("ReverseSequence", "time_axis", time_axis)

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the reversed sequences."""
        lengths = integer_list("ReverseSequence", "sequence_lens", others[0], minimum=0)
        batch, time = (
            normalise_axis("ReverseSequence", axis, data.ndim, name=name)
            for name, axis in (("batch_axis", self.batch_axis), ("time_axis", self.time_axis))
        )
        if batch == time or len(lengths) != data.shape[batch] or max(lengths, default=0) > data.shape[time]:
            raise OperatorError(
                f"ReverseSequence: received sequence_lens {lengths} for data of shape {data.shape} with batch_axis="
                f"{batch} and time_axis={time}; accepted are two axes, and one length of at most the size of the time "
                f"axis for each sequence."
            )
        result = np.array(data)
        new, old = (np.moveaxis(tensor, (batch, time), (0, 1)) for tensor in (result, data))
        for i, length in enumerate(lengths):
            new[i, :length] = old[i, :length][::-1]
        return result
