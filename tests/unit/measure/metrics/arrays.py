"""Strategies for outputs of any dtype, and an oracle that subtracts them as fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

INTEGERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64", "longdouble"]
COMPLEX = ["complex64", "complex128"]
EXTENDED = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"]

shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name)) if name in EXTENDED else np.dtype(name)


@st.composite
def arrays(draw: st.DrawFn, names: list[str], shape: tuple[int, ...] | None = None) -> np.ndarray[Any, Any]:
    """Arrays of one of the dtypes, with NaN, infinities and the extremes of the dtype among the values."""
    name = draw(st.sampled_from(names))
    shape = draw(shapes) if shape is None else shape
    if name in EXTENDED:
        raw = draw(hnp.arrays(np.uint8 if "8" in name or "4" in name else np.uint16, shape))
        if name == "bfloat16":
            raw = draw(hnp.arrays(np.uint16, shape))
        if name in ("int4", "uint4"):
            return (raw % 8).astype(dtype_of(name))
        return raw.view(dtype_of(name))
    # Hypothesis makes no longdouble; sums of two doubles have more bits than a double.
    if name == "longdouble":
        high, low = (draw(hnp.arrays(np.float64, shape)) for _ in range(2))
        with np.errstate(all="ignore"):
            return np.asarray(high.astype(np.longdouble) + low.astype(np.longdouble) * 2.0**-60)
    return draw(hnp.arrays(dtype_of(name), shape))


@st.composite
def pairs(draw: st.DrawFn, names: list[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Two arrays of one shape, whose dtypes may differ, and which agree in some places."""
    left = draw(arrays(names))
    right = draw(arrays(names, left.shape))
    if left.dtype == right.dtype and left.size and draw(st.booleans()):
        right = np.where(draw(hnp.arrays(np.bool_, left.shape)), left, right).astype(left.dtype)
    return left, right


def distance(left: Any, right: Any) -> float:
    """Return what two real numbers differ by, as the metrics define it, rounded once."""
    left, right = _exact(left), _exact(right)
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return rounded(abs(left - right))
    if isinstance(left, float) and isinstance(right, float) and (left == right or (left != left and right != right)):
        return 0.0
    return math.nan if left != left or right != right else math.inf


def rounded(number: Fraction) -> float:
    """Return the nearest float, infinity beyond the largest."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _exact(value: Any) -> Fraction | float:
    """Return a finite number as a fraction, anything else as a float."""
    if isinstance(value, np.longdouble) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, (int, float)):
        number = float(number)
    return Fraction(number) if isinstance(number, int) or math.isfinite(number) else float(number)
