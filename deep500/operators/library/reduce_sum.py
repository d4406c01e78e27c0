"""ONNX ReduceSum."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._reduction import ReductionOperator
from deep500.operators.library._tensors import compute_dtype
from deep500.operators.operator import Array

__all__ = ["ReduceSum"]


class ReduceSum(ReductionOperator):
    r"""Sum over axes, :math:`y = \sum_i x_i`.

    Inputs: data, a float or an integer of 32 or 64 bits; optionally axes, int64 ``[n]``. Output: data's dtype. 16-bit
    floats are summed in float32; integers wrap around. The sum over no elements is 0.

    Source: ONNX ReduceSum, version 13.
    """

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the sum."""
        return np.asarray(np.sum(data, axis=axes, dtype=compute_dtype(data.dtype), keepdims=True))

    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient."""
        return gradient
