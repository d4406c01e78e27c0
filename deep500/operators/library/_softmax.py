"""Softmax and its logarithm, computed so that exponentials do not overflow."""

from __future__ import annotations

import numpy as np

from deep500.operators.operator import Array

__all__ = ["log_softmax", "softmax"]


def log_softmax(x: Array, axis: int) -> Array:
    r"""Return :math:`x - m - \log \sum e^{x - m}` with the maximum m along an axis.

    Args:
        x: Floats.
        axis: The axis, counted from the front.

    Returns:
        A new tensor of the same shape and dtype.
    """
    if x.size == 0:
        return x.copy()
    shifted = x - x.max(axis=axis, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return np.asarray(shifted)


def softmax(x: Array, axis: int) -> Array:
    r"""Return :math:`e^{x - m} / \sum e^{x - m}` with the maximum m along an axis.

    Args:
        x: Floats.
        axis: The axis, counted from the front.

    Returns:
        A new tensor of the same shape and dtype.
    """
    if x.size == 0:
        return x.copy()
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    powers /= powers.sum(axis=axis, keepdims=True)
    return np.asarray(powers)
