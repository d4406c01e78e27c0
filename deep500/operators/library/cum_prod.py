"""ONNX CumProd."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._cumulation import CumulativeOperator
from deep500.operators.operator import Array

__all__ = ["CumProd"]


class CumProd(CumulativeOperator):
    r"""Running product along an axis, :math:`y_i = \prod_{k \le i} x_k`.

    Inputs: x, a float or an integer; axis, one integer. Output: x's dtype and shape. 16-bit floats are multiplied in
    float32; integers wrap around.

    Source: ONNX CumProd, version 26.
    """

    def accumulate(self, x: Array) -> Array:
        """Return the running product."""
        product = np.cumprod(x, axis=-1, dtype=x.dtype)
        return _after_one(product) if self.exclusive else np.asarray(product)

    def differentiate(self, gradient: Array, x: Array) -> Array:
        r"""Return :math:`\prod_{k < i} x_k \sum_{j \ge i} g_j \prod_{i < k \le j} x_k`, where no entry is divided by.

        The sum is :math:`s_i = g_i + x_{i+1} s_{i+1}`; for the exclusive product :math:`s_i = g_{i+1} + x_{i+1}
        s_{i+1}`.
        """
        size = x.shape[-1]
        sums, rest = np.empty_like(x), np.zeros_like(x[..., 0])
        for i in range(size - 1, -1, -1):
            if i + 1 < size:
                rest = rest * x[..., i + 1]
                if self.exclusive:
                    rest = rest + gradient[..., i + 1]
            if not self.exclusive:
                rest = rest + gradient[..., i]
            sums[..., i] = rest
        return _after_one(np.cumprod(x, axis=-1)) * sums


def _after_one(product: Array) -> Array:
    """Return running products moved on by one entry, the first one 1."""
    return np.concatenate([np.ones((*product.shape[:-1], 1), product.dtype), product[..., :-1]], axis=-1)
