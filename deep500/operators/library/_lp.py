"""The Lp norm, for the operators that pool or normalise by it."""

from __future__ import annotations

import numpy as np

from deep500.operators.operator import Array

__all__ = ["norm_slope", "power", "root"]


def power(x: Array, p: int) -> Array:
    """Return ``|x| ** p`` in x' dtype."""
    size = np.abs(x)
    return np.asarray(size if p == 1 else size**p)


def root(total: Array, p: int) -> Array:
    """Return ``total ** (1 / p)`` in the total's dtype."""
    return np.asarray(total if p == 1 else np.sqrt(total) if p == 2 else total ** total.dtype.type(1 / p))


def norm_slope(x: Array, norm: Array, p: int) -> Array:
    r"""Return the derivative of a norm by an element, :math:`\text{sign}(x) (|x| / \text{norm})^{p - 1}`; 0 at 0."""
    if p == 1:
        return np.sign(x)
    share = np.divide(np.abs(x), norm, out=np.zeros(np.broadcast_shapes(x.shape, norm.shape), x.dtype), where=norm != 0)
    return np.asarray(np.sign(x) * (share if p == 2 else share ** (p - 1)))
