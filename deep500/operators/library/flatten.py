"""ONNX Flatten."""

from __future__ import annotations

import math
from collections.abc import Sequence

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._movement import ReshapingOperator
from deep500.operators.library._tensors import present, take_inputs
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Flatten"]


class Flatten(ReshapingOperator):
    r"""Make a matrix of a tensor.

    Input ``[d0, ..., dn]`` of any dtype, output ``[d0 * ... * d(axis-1), d(axis) * ... * dn]``, a view where possible;
    a scalar becomes ``[1, 1]``.

    Source: ONNX Flatten, version 25.
    """

    def __init__(self, *, axis: int = 1) -> None:
        """Set the attribute.

        Args:
            axis: First axis of the inner dimension, from ``-r`` to ``r`` for a tensor of rank ``r``.

        Raises:
            OperatorError: It is not an integer.
        """
        self.axis = attributes.integer("Flatten", "axis", axis)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the matrix.

        Raises:
            OperatorError: The tensor's rank is smaller than the axis.
        """
        x = present(take_inputs("Flatten", inputs, ["input"])[0])
        axis = self.axis + x.ndim if self.axis < 0 else self.axis
        if not 0 <= axis <= x.ndim:
            # Scalars with the default axis 1 are common, and the reference evaluator takes them.
            if x.ndim == 0 and axis == 1:
                return (x.reshape(1, 1),)
            raise OperatorError(
                f"Flatten: axis is {self.axis} for a tensor of shape {x.shape}; accepted is from {-x.ndim} to {x.ndim}."
            )
        return (x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])),)
