"""ONNX Concat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import is_float, normalise_axis, present, returned
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Concat"]


class Concat(Operator):
    """Join tensors along an axis.

    One or more inputs of one dtype (any) and of one shape except for the size of the axis; the output is a new tensor.

    Source: ONNX Concat, version 13.
    """

    def __init__(self, *, axis: int) -> None:
        """Set the attribute.

        Args:
            axis: The axis; negative values count from the back.

        Raises:
            OperatorError: It is not an integer.
        """
        self.axis = attributes.integer("Concat", "axis", axis)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Join the tensors.

        Raises:
            OperatorError: There is no input, or dtypes or shapes do not fit.
        """
        if not inputs or any(x is None for x in inputs):
            received = ", ".join("nothing" if x is None else f"{x.dtype} {x.shape}" for x in inputs)
            raise OperatorError(f"Concat: received [{received}]; accepted is at least one tensor, none of them absent.")
        tensors = [np.asarray(present(x)) for x in inputs]
        axis = normalise_axis("Concat", self.axis, tensors[0].ndim)
        others = {(x.dtype, x.ndim, x.shape[:axis], x.shape[axis + 1 :]) for x in tensors}
        if len(others) > 1:
            received = ", ".join(f"{x.dtype} {x.shape}" for x in tensors)
            raise OperatorError(
                f"Concat: received {received}; accepted is one dtype, and one shape except for the size of axis {axis}."
            )
        return (np.concatenate(tensors, axis=axis),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by the inputs: the parts of the output's (views of it)."""
        tensors = [np.asarray(present(x)) for x in fwd_inputs]
        if grads[0] is None or not is_float(tensors[0].dtype):
            return (None,) * len(tensors)
        ends = np.cumsum([x.shape[self.axis] for x in tensors])
        return returned(np.split(np.asarray(grads[0]), ends[:-1].tolist(), axis=self.axis), fwd_inputs)
