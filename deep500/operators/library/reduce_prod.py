"""ONNX ReduceProd."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._products import product_of_others
from deep500.operators.library._reduction import ReductionOperator
from deep500.operators.library._tensors import compute_dtype
from deep500.operators.operator import Array

__all__ = ["ReduceProd"]


class ReduceProd(ReductionOperator):
    r"""Product over axes, :math:`y = \prod_i x_i`.

    Inputs: data, a float or an integer; optionally axes, int64 ``[n]``. Output: data's dtype. 16-bit floats
    are multiplied in float32; integers wrap around. The product over no elements is 1.

    Source: ONNX ReduceProd, version 18.
    """

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the product."""
        return np.asarray(np.prod(data, axis=axes, dtype=compute_dtype(data.dtype), keepdims=True))

    def slope_times(self, gradient: Array, data: Array, y: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the gradient times the product of the other elements."""
        return gradient * product_of_others(data, axes)
