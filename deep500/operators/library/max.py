"""ONNX Max."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from deep500.operators.library._variadic import ExtremeOperator
from deep500.operators.operator import Array

__all__ = ["Max"]


class Max(ExtremeOperator):
    """Element by element the largest of one or more tensors, with broadcasting.

    Inputs and output have one dtype, a float or an integer. NaN wins over everything. Tensors that are equal share the
    gradient evenly.

    Source: ONNX Max, version 13.
    """

    def value(self, tensors: Sequence[Array]) -> Array:
        """Return the largest."""
        return np.asarray(functools.reduce(np.maximum, tensors))
