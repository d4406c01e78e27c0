"""ONNX ReduceLogSumExp."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._reduction import ReductionOperator
from deep500.operators.library._tensors import compute_dtype
from deep500.operators.operator import Array

__all__ = ["ReduceLogSumExp"]


class ReduceLogSumExp(ReductionOperator):
    r"""Logarithm of the sum of exponentials over axes, :math:`y = \ln \sum_i e^{x_i}`.

    Inputs: data, a float; optionally axes, int64 ``[n]``. Output: data's dtype. 16-bit
    floats are computed in float32; the largest element is taken out, so that nothing overflows. Over no elements it is
    minus infinity.

    Source: ONNX ReduceLogSumExp, version 28.
    """

    accepts = "floats"

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the logarithm."""
        wide = data.astype(compute_dtype(data.dtype), copy=False)
        largest = np.max(wide, axis=axes, keepdims=True, initial=-np.inf)
        # Infinities less themselves would be NaN.
        shift = np.where(np.isfinite(largest), largest, wide.dtype.type(0))
        return np.asarray(np.log(np.sum(np.exp(wide - shift), axis=axes, keepdims=True)) + shift)

    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient times ``exp(x - y)``."""
        return np.asarray(gradient * np.exp(data - y))
