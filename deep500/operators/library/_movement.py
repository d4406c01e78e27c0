"""The frame of operators that move elements without changing them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.operators.library._tensors import is_float, returned
from deep500.operators.operator import Operator, OptionalArray

__all__ = ["ReshapingOperator"]


class ReshapingOperator(Operator):
    """An operator whose first input keeps its elements and their order, and takes another shape.

    The output is a view of the input where NumPy can give one.
    """

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the first input: the output's, in the input's shape."""
        x = np.asarray(fwd_inputs[0])
        if grads[0] is None or not is_float(x.dtype):
            return (None,) * len(fwd_inputs)
        rest: list[OptionalArray] = [None] * (len(fwd_inputs) - 1)
        return returned([np.asarray(grads[0]).reshape(x.shape), *rest], fwd_inputs)
