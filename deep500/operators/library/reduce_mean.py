"""ONNX ReduceMean."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._integers import truncated_quotient
from deep500.operators.library._reduction import ReductionOperator
from deep500.operators.library._tensors import compute_dtype, is_float
from deep500.operators.operator import Array

__all__ = ["ReduceMean"]


class ReduceMean(ReductionOperator):
    r"""Mean over axes, :math:`y = \frac{1}{n} \sum_i x_i`.

    Inputs: data, a float or an integer of 32 or 64 bits; optionally axes, int64 ``[n]``. Output: data's dtype. 16-bit
    floats are summed in float32; integers in 64 bits, and the mean is rounded towards zero. The mean over no elements
    is NaN for floats and 0 for integers.

    Source: ONNX ReduceMean, version 18.
    """

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the mean."""
        if is_float(data.dtype):
            total = np.asarray(np.sum(data, axis=axes, dtype=compute_dtype(data.dtype), keepdims=True))
            return np.asarray(total / total.dtype.type(count))
        wide = np.uint64 if data.dtype.kind == "u" else np.int64
        total = np.asarray(np.sum(data, axis=axes, dtype=wide, keepdims=True))
        return truncated_quotient(total, total.dtype.type(count))

    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient, shared out evenly."""
        return np.asarray(gradient / gradient.dtype.type(count))
