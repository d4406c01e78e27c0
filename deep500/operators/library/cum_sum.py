"""ONNX CumSum."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._cumulation import CumulativeOperator
from deep500.operators.operator import Array

__all__ = ["CumSum"]


class CumSum(CumulativeOperator):
    r"""Running sum along an axis, :math:`y_i = \sum_{k \le i} x_k`.

    Inputs: x, a float or an integer; axis, one integer. Output: x's dtype and shape. 16-bit floats are summed in
    float32; integers wrap around.

    Source: ONNX CumSum, version 14.
    """

    def accumulate(self, x: Array) -> Array:
        """Return the running sum."""
        total = np.cumsum(x, axis=-1, dtype=x.dtype)
        return np.asarray(_after_zero(total) if self.exclusive else total)

    def differentiate(self, gradient: Array, x: Array) -> Array:
        """Return the running sum of the gradient from the end."""
        back = gradient[..., ::-1]
        total = np.cumsum(back, axis=-1)
        return np.asarray((_after_zero(total) if self.exclusive else total)[..., ::-1])


def _after_zero(total: Array) -> Array:
    """Return running sums moved on by one entry, the first one 0."""
    return np.concatenate([np.zeros((*total.shape[:-1], 1), total.dtype), total[..., :-1]], axis=-1)
