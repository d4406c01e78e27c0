"""ONNX Squeeze."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.core.errors import OperatorError
from deep500.operators.library._movement import ReshapingOperator
from deep500.operators.library._tensors import as_axes, present, take_inputs
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Squeeze"]


class Squeeze(ReshapingOperator):
    """Drop axes of the size 1.

    Inputs: data of any dtype and shape; optionally axes, int64 ``[n]``, which axes to drop, by default all of the size
    1. Output: a view where possible.

    Source: ONNX Squeeze, version 25.
    """

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Drop the axes.

        Raises:
            OperatorError: An axis is out of range, there twice, or not of the size 1.
        """
        received = take_inputs("Squeeze", inputs, ["data"], ["axes"])
        data, given = present(received[0]), received[1]
        if given is None:
            axes = tuple(i for i, size in enumerate(data.shape) if size == 1)
        else:
            axes = as_axes("Squeeze", given, data.ndim)
        if any(data.shape[axis] != 1 for axis in axes):
            raise OperatorError(
                f"Squeeze: received data of shape {data.shape} and axes {list(axes)}; accepted are axes of the size 1."
            )
        return (data.reshape([size for i, size in enumerate(data.shape) if i not in axes]),)
