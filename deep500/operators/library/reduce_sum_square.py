"""ONNX ReduceSumSquare."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._reduction import ReductionOperator
from deep500.operators.library._tensors import compute_dtype
from deep500.operators.operator import Array

__all__ = ["ReduceSumSquare"]


class ReduceSumSquare(ReductionOperator):
    r"""Sum of squares over axes, :math:`y = \sum_i x_i^2`.

    Inputs: data, a float or an integer; optionally axes, int64 ``[n]``. Output: data's dtype. 16-bit floats
    are summed in float32; integers wrap around.

    Source: ONNX ReduceSumSquare, version 18.
    """

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the sum of the squares."""
        wide = data.astype(compute_dtype(data.dtype), copy=False)
        return np.asarray(np.sum(np.square(wide), axis=axes, dtype=wide.dtype, keepdims=True))

    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient times ``2 x``."""
        return 2 * gradient * data
