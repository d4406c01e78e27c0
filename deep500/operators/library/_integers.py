"""Division of integers as ONNX has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from deep500.operators.operator import Array

__all__ = ["truncated_quotient"]


def truncated_quotient(a: Array, b: Any) -> Array:
    """Return ``a / b`` rounded towards zero, in integers throughout (floats would lose digits beyond 53 bits).

    Division by zero gives 0, as in NumPy; ONNX leaves it open.
    """
    quotient = np.floor_divide(a, b)
    # Floor and truncation differ by one where the signs differ and something remains.
    differs = ((a < 0) != (b < 0)) & (quotient * b != a) & (np.asarray(b) != 0)
    return np.asarray(quotient + differs.astype(quotient.dtype))
