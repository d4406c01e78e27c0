"""ONNX ReduceL1."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._reduction import ReductionOperator
from deep500.operators.library._tensors import compute_dtype
from deep500.operators.operator import Array

__all__ = ["ReduceL1"]


class ReduceL1(ReductionOperator):
    r"""Sum of sizes over axes, :math:`y = \sum_i |x_i|`.

    Inputs: data, a float or an integer; optionally axes, int64 ``[n]``. Output: data's dtype. 16-bit floats
    are summed in float32; integers wrap around. The slope at 0 is 0.

    Source: ONNX ReduceL1, version 18.
    """

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the sum of the sizes."""
        wide = data.astype(compute_dtype(data.dtype), copy=False)
        return np.asarray(np.sum(np.abs(wide), axis=axes, dtype=wide.dtype, keepdims=True))

    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient times the signs."""
        return gradient * np.sign(data)
