"""ONNX ReduceMax."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._reduction import ExtremeReduction, lowest
from deep500.operators.operator import Array

__all__ = ["ReduceMax"]


class ReduceMax(ExtremeReduction):
    r"""Largest element over axes.

    Inputs: data, a float, an integer or bool; optionally axes, int64 ``[n]``. Output: data's dtype. The largest of no
    elements is minus infinity, the smallest integer, or false. Elements that are equal share the gradient evenly.

    Source: ONNX ReduceMax, version 20.
    """

    def reduce(self, data: Array, axes: tuple[int, ...], count: int) -> Array:
        """Return the largest element."""
        return np.asarray(np.max(data, axis=axes, keepdims=True, initial=lowest(data.dtype)))
