"""ONNX OneHot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import is_float, normalise_axis, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["OneHot"]


class OneHot(Operator):
    """Vectors that hold one value at the place which an index names, and another one elsewhere.

    Inputs: indices, numbers of any shape, those from ``-depth`` to -1 counted from the back, all others beyond the
    vector nowhere in it; depth, one number; values ``[off, on]`` of any dtype. Output: values' dtype, with an axis of
    the size depth more.

    Source: ONNX OneHot, version 28.
    """

    def __init__(self, *, axis: int = -1) -> None:
        """Set the attribute.

        Args:
            axis: Where the new axis is; negative values count from the back.

        Raises:
            OperatorError: It is not an integer.
        """
        self.axis = attributes.integer("OneHot", "axis", axis)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the vectors.

        Raises:
            OperatorError: The axis is out of range, depth is not one number, or there are not two values.
        """
        hot, values = self._read(inputs)
        return (np.where(hot, values[1], values[0]).astype(values.dtype, copy=False),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the values."""
        hot, values = self._read(fwd_inputs)
        if grads[0] is None or not is_float(values.dtype):
            return (None, None, None)
        gradient = np.asarray(grads[0]).astype(np.float64)
        return returned([None, None, np.array([gradient[~hot].sum(), gradient[hot].sum()])], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Array]:
        """Check the inputs; return where the vectors are on, and the two values."""
        indices, given, values = map(present, take_inputs("OneHot", inputs, ["indices", "depth", "values"]))
        if given.size != 1 or values.shape != (2,):
            raise OperatorError(
                f"OneHot: received a depth of shape {given.shape} and values of shape {values.shape}; accepted are one "
                f"number and [off, on]."
            )
        depth = int(given.reshape(-1)[0])
        axis = normalise_axis("OneHot", self.axis, indices.ndim + 1)
        wide = np.expand_dims(indices.astype(np.int64), axis)
        wide = np.where(wide < 0, wide + depth, wide)
        places = np.arange(depth).reshape([depth if i == axis else 1 for i in range(indices.ndim + 1)])
        return np.asarray(wide == places), values
