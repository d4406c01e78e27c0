"""Whether tensors are finite, of whatever floating dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["finite_elements", "is_finite"]


def finite_elements(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which elements are finite; all of what is no floating tensor."""
    if array.dtype.kind in "iubOUSTmM":
        return np.ones(array.shape, np.bool_)
    # Dtypes such as bfloat16 are none that NumPy's functions know; all of them fit into float32.
    known = array if array.dtype.kind in "fc" else array.astype(np.float32)
    return np.asarray(np.isfinite(known))


def is_finite(array: NDArray[Any]) -> bool:
    """Whether all elements are finite."""
    return bool(finite_elements(array).all())
