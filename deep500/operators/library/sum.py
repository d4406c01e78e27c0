"""ONNX Sum."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from deep500.operators.library._variadic import VariadicOperator
from deep500.operators.operator import Array

__all__ = ["Sum"]


class Sum(VariadicOperator):
    r"""Sum of one or more tensors, :math:`y = \sum_i x_i`, with broadcasting.

    Inputs and output have one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Sum, version 13.
    """

    def value(self, tensors: Sequence[Array]) -> Array:
        """Return the sum."""
        return np.asarray(functools.reduce(np.add, tensors))

    def slopes_times(self, gradient: Array, tensors: Sequence[Array], y: Array) -> Sequence[Array]:
        """Return the gradient for each."""
        return [gradient] * len(tensors)
