"""ONNX Clip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._tensors import check_dtypes, compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Clip"]


class Clip(Operator):
    r"""Limit to an interval, :math:`y = \min(\text{max}, \max(x, \text{min}))`.

    Inputs: input, a float or an integer of any shape; optionally min and max, scalars of its dtype. Output: the input's
    shape and dtype. Where min is greater than max, everything is max. NaN stays NaN.

    The gradient goes to what y equals: to x where it lies within the interval, its ends included, else to min or max.

    Source: ONNX Clip, version 13.
    """

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Limit the input.

        Raises:
            OperatorError: The dtypes differ, or min or max is not a scalar.
        """
        x, low, high = _read(inputs)
        y = x if low is None else np.maximum(x, low)
        y = y if high is None else np.minimum(y, high)
        return (np.asarray(y).astype(x.dtype, copy=y is x),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by the input, min and max."""
        x, low, high = _read(fwd_inputs)
        if grads[0] is None or not is_float(x.dtype):
            return (None,) * len(fwd_inputs)
        wide = compute_dtype(x.dtype)
        gradient, zero = np.asarray(grads[0]).astype(wide, copy=False), wide.type(0)
        nowhere = np.zeros(x.shape, np.bool_)
        to_high = nowhere if high is None else (x if low is None else np.maximum(x, low)) > high
        to_low = nowhere if low is None else (x < low) & ~to_high
        by_x = np.where(to_low | to_high, zero, gradient)
        return returned([by_x, gradient[to_low].sum(), gradient[to_high].sum()], fwd_inputs)


def _read(inputs: Sequence[OptionalArray]) -> tuple[Array, OptionalArray, OptionalArray]:
    """Check the inputs."""
    received = take_inputs("Clip", inputs, ["input"], ["min", "max"])
    check_dtypes("Clip", ["input", "min", "max"], received, "numbers")
    for name, limit in zip(("min", "max"), received[1:], strict=True):
        if limit is not None and limit.ndim != 0:
            raise OperatorError(f"Clip: received {name} of shape {limit.shape}; accepted is a scalar, shape ().")
    return present(received[0]), received[1], received[2]
