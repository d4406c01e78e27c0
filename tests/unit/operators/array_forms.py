"""One set of values in the many forms in which NumPy can hold it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

__all__ = ["FORMS", "SHAPES", "in_form"]

#: What :func:`in_form` knows; where a form does not exist for an array, it stays plain.
FORMS = ("plain", "transposed", "reversed", "gaps", "broadcast", "unaligned", "swapped", "fixed")

#: Shapes of up to five dimensions, with sizes from 0.
SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=5).map(tuple)


def in_form(values: np.ndarray, form: str) -> np.ndarray:
    """Return an array in a form: of the same values, or of fewer different ones ("broadcast")."""
    if form == "transposed" and values.ndim:
        return np.ascontiguousarray(values.T).T
    if form == "reversed" and values.ndim:
        return np.ascontiguousarray(values[::-1])[::-1]
    if form == "gaps":
        wide = np.zeros((*values.shape, 3), values.dtype)
        wide[..., 1] = values
        return wide[..., 1]
    if form == "broadcast" and values.ndim and values.shape[-1]:
        return np.broadcast_to(values[..., :1], values.shape)
    if form == "unaligned":
        return unaligned(values)
    if form == "swapped" and values.dtype != ml_dtypes.bfloat16:
        return values.astype(values.dtype.newbyteorder())
    if form == "fixed":
        fixed = values.copy()
        fixed.setflags(write=False)
        return fixed
    return values


def unaligned(values: np.ndarray) -> Any:
    """Return the values one byte behind an address that their dtype may have."""
    buffer = np.zeros(values.nbytes + 1, np.uint8)
    moved = buffer[1:].view(values.dtype).reshape(values.shape)
    moved[...] = values
    return moved
