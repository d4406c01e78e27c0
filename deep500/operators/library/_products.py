"""Products of all elements but one, without dividing by what may be 0."""

from __future__ import annotations

import numpy as np

from deep500.operators.operator import Array

__all__ = ["product_of_others"]


def product_of_others(x: Array, axes: tuple[int, ...]) -> Array:
    """Return for every element the product of the others along axes: of those before it and of those after it.

    Args:
        x: Floats.
        axes: The axes, counted from the front; without any there are no others, and the product is 1.
    """
    if x.size == 0:
        return np.ones_like(x)
    moved = np.moveaxis(x, axes, range(-len(axes), 0)) if axes else x[..., None]
    kept = moved.shape[: x.ndim - len(axes)]
    flat = moved.reshape(*kept, -1)
    one = np.ones((*kept, 1), x.dtype)
    before = np.cumprod(np.concatenate([one, flat[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([one, flat[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    others = (before * after).reshape(moved.shape)
    return np.moveaxis(others, range(-len(axes), 0), axes) if axes else np.asarray(others[..., 0])
