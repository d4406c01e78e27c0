"""ONNX ReduceLogSum."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._reduction import ReductionOperator
from deep500.operators.library._tensors import compute_dtype
from deep500.operators.operator import Array

__all__ = ["ReduceLogSum"]


class ReduceLogSum(ReductionOperator):
    r"""Logarithm of the sum over axes, :math:`y = \ln \sum_i x_i`.

    Inputs: data, a float; optionally axes, int64 ``[n]``. Output: data's dtype. 16-bit
    floats are computed in float32. Over no elements it is minus infinity.

    Source: ONNX ReduceLogSum, version 28.
    """

    accepts = "floats"

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the logarithm."""
        return np.asarray(np.log(np.sum(data, axis=axes, dtype=compute_dtype(data.dtype), keepdims=True)))

    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient over the sum."""
        return np.asarray(gradient / np.sum(data, axis=axes, keepdims=True))
