"""ONNX ReduceL2."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._reduction import ReductionOperator
from deep500.operators.library._tensors import compute_dtype, is_float
from deep500.operators.operator import Array

__all__ = ["ReduceL2"]


class ReduceL2(ReductionOperator):
    r"""Euclidean norm over axes, :math:`y = \sqrt{\sum_i x_i^2}`.

    Inputs: data, a float or an integer; optionally axes, int64 ``[n]``. Output: data's dtype. 16-bit floats
    are summed in float32, integers in float64, rounded towards zero. The slope at 0 is 0.

    Source: ONNX ReduceL2, version 18.
    """

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the norm."""
        wide = data.astype(compute_dtype(data.dtype) if is_float(data.dtype) else np.float64, copy=False)
        return np.asarray(np.sqrt(np.sum(np.square(wide), axis=axes, keepdims=True)))

    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient times ``x / y``."""
        return gradient * np.where(y == 0, y.dtype.type(0), data / y)
