"""Comparing tensors: what is allowed follows from dtype, length of reductions and size of the terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.tolerance import tolerance, unit_roundoff
from deep500.networks.validation.report import TensorComparison

__all__ = ["compare_tensors", "largest"]


def compare_tensors(
    framework: str,
    what: str,
    found: Any,
    expected: Any,
    *,
    length: int,
    scale: float = 0.0,
    relative: float | None = None,
    among: float = 0.0,
) -> TensorComparison:
    """Compare a tensor with the reference's.

    Args:
        framework: Whose tensor it is.
        what: How it is called.
        found: The tensor.
        expected: The reference's.
        length: Length of the longest reduction on its way.
        scale: Size of the terms that were summed, where that is more than the largest value.
        relative: What is allowed relative to the scale, in place of what follows from the length.
        among: Size of the numbers that it was computed from; one rounding of them is allowed as well. What is zero but
            for rounding is measured by these.
    """
    if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray):
        problem = "" if _same(found, expected) else "the values differ"
        return TensorComparison(framework, what, problem=problem)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        problem = f"is {found.dtype.name}{list(found.shape)}, and {expected.dtype.name}{list(expected.shape)} there"
        return TensorComparison(framework, what, problem=problem)
    if expected.dtype.kind in "OUSTbiu" or expected.dtype.name in ("int4", "uint4", "int2", "uint2"):
        wrong = int((found != expected).sum())
        problem = f"{wrong} of {expected.size} elements differ" if wrong else ""
        return TensorComparison(framework, what, problem=problem)
    size = max(scale, largest(expected))
    try:
        share = tolerance(expected.dtype.name, length).relative if relative is None else relative
    except MeasurementError:  # so long a reduction has no tolerance in this dtype
        share = 1.0
    # Both were rounded, hence twice; a difference below the smallest numbers is none.
    rounding = 2 * unit_roundoff(expected.dtype.name) * max(size, among)
    allowed = 2 * share * size + rounding + float(np.finfo(np.float32).tiny)
    return TensorComparison(framework, what, _difference(found, expected), size, allowed)


def largest(value: Any) -> float:
    """Return the largest absolute value of a tensor that is finite; 0 of one without elements."""
    if not isinstance(value, np.ndarray) or value.dtype.kind in "OUST" or not value.size:
        return 0.0
    sizes = np.abs(_wide(value))
    finite = sizes[np.isfinite(sizes)]
    return float(finite.max()) if finite.size else 0.0


def _wide(value: Any) -> Any:
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def _difference(found: Any, expected: Any) -> float:
    """Return the largest difference; infinite where only one is finite or not a number."""
    if not expected.size:
        return 0.0
    a, b = _wide(found), _wide(expected)
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.where(same, 0.0, np.abs(a - b))
    return float(np.where(np.isnan(apart), np.inf, apart).max())


def _same(found: Any, expected: Any) -> bool:
    if isinstance(found, (list, tuple)) and isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(_same, found, expected))
    if isinstance(found, np.ndarray) and isinstance(expected, np.ndarray):
        return found.shape == expected.shape and bool(np.allclose(found, expected, rtol=1e-4, equal_nan=True))
    return found is None and expected is None
