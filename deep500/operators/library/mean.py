"""ONNX Mean."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from deep500.operators.library._variadic import VariadicOperator
from deep500.operators.operator import Array

__all__ = ["Mean"]


class Mean(VariadicOperator):
    r"""Mean of one or more tensors, :math:`y = \frac{1}{n} \sum_i x_i`, with broadcasting.

    Inputs and output have one dtype: float16, bfloat16, float32 or float64.

    Source: ONNX Mean, version 13.
    """

    def value(self, tensors: Sequence[Array]) -> Array:
        """Return the mean."""
        return np.asarray(functools.reduce(np.add, tensors) / tensors[0].dtype.type(len(tensors)))

    def slopes_times(self, gradient: Array, tensors: Sequence[Array], y: Array) -> Sequence[Array]:
        """Return the gradient, shared out evenly."""
        return [np.asarray(gradient / gradient.dtype.type(len(tensors)))] * len(tensors)
