"""ONNX ReduceMin."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._reduction import ExtremeReduction, highest
from deep500.operators.operator import Array

__all__ = ["ReduceMin"]


class ReduceMin(ExtremeReduction):
    r"""Smallest element over axes.

    Inputs: data, a float, an integer or bool; optionally axes, int64 ``[n]``. Output: data's dtype. The smallest of no
    elements is infinity, the largest integer, or true. Elements that are equal share the gradient evenly.

    Source: ONNX ReduceMin, version 20.
    """

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the smallest element."""
        return np.asarray(np.min(data, axis=axes, keepdims=True, initial=highest(data.dtype)))
