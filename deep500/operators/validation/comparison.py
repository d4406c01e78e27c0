"""An array against what it should be: the worst element, and whether it is within what is allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.core.texts import shown
from deep500.measure.tolerance import Tolerance, largest_violation, tolerance
from deep500.operators.operator import Array
from deep500.operators.validation.contract import is_whole
from deep500.operators.validation.variants import coarsest

__all__ = ["Comparison", "allowed_for", "as_tolerance", "compare", "largest_size", "number"]


@dataclass(frozen=True)
class Comparison:
    """The element of an array that is farthest from what it should be.

    Attributes:
        index: Its index; ``None`` where there are no elements.
        actual: Its value.
        reference: What it should be.
        error: The difference; NaN where only one of both is NaN.
        allowed: What was allowed for it.
        count: How many elements differ by more than allowed.
        scale: The largest finite size of an element of the reference.
    """

    index: tuple[int, ...] | None
    actual: complex
    reference: complex
    error: float
    allowed: float
    count: int
    scale: float

    @property
    def is_close(self) -> bool:
        """Whether all elements are within what is allowed."""
        return self.count == 0

    @property
    def relative_error(self) -> float:
        """The error relative to the largest element of the reference; 0 where both are 0."""
        return 0.0 if self.error == 0 else self.error / self.scale if self.scale else math.inf

    def __str__(self) -> str:
        """Return the element and its values, for messages."""
        if self.index is None:
            return "no elements"
        return (
            f"at {list(self.index)} it is {number(self.actual)}, should be {number(self.reference)} and differs by "
            f"{self.error:.3g} where {self.allowed:.3g} is allowed"
        )


def compare(actual: Array, reference: Array, allowed: Tolerance) -> Comparison:
    """Compare arrays of one shape.

    Args:
        actual: The array.
        reference: What it should be.
        allowed: What is allowed.
    """
    scale = largest_size(reference)
    worst = largest_violation(actual, reference, allowed)
    if worst is not None:
        return Comparison(worst.index, worst.actual, worst.reference, worst.error, worst.allowed, worst.count, scale)
    if not actual.size:
        return Comparison(None, 0.0, 0.0, 0.0, allowed.absolute, 0, scale)
    wide = np.complex128 if np.iscomplexobj(actual) or np.iscomplexobj(reference) else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(actual.astype(wide) - reference.astype(wide))
    error = np.where(np.isfinite(apart), apart, 0.0)  # equal infinities and NaNs: any others are violations
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    value, wanted = actual.astype(wide)[place].item(), reference.astype(wide)[place].item()
    limit = allowed.absolute + allowed.relative * abs(wanted)
    return Comparison(place, value, wanted, float(error[place]), limit, 0, scale)


def allowed_for(
    given: Any, actual: Array, reference: Array, length: int, *, scale: float | None = None, factor: float = 1.0
) -> Tolerance:
    """Return what is allowed for an output.

    Args:
        given: What the user tolerates: a :class:`~deep500.measure.tolerance.Tolerance`, a number (relative to the
            largest element), or ``None`` for what the dtype and the length of the reductions allow.
        actual: The output.
        reference: What it should be.
        length: Length of the reductions.
        scale: Size of the terms; by default the largest element of the reference.
        factor: How many such errors may add up, 2 where neither of both is exact.

    Raises:
        OperatorError: The tolerance is none of these.
    """
    size = largest_size(reference) if scale is None else scale
    if given is None:
        # Between integers nothing is allowed; else the coarser of both dtypes decides.
        if is_whole(actual.dtype) and is_whole(reference.dtype):
            return Tolerance(0.0, 0.0, "exact")
        floats = [x for x in (actual, reference) if not is_whole(x.dtype)]
        dtype = floats[0].dtype if np.iscomplexobj(floats[0]) else coarsest(floats)
        found = tolerance(dtype, length, scale=size)
        return Tolerance(factor * found.relative, factor * found.absolute, found.bound)
    checked = as_tolerance(given)
    return checked if isinstance(given, Tolerance) else Tolerance(checked.relative, checked.relative * size)


def as_tolerance(given: Any) -> Tolerance:
    """Return what a user tolerates; a number is relative.

    Raises:
        OperatorError: It is no tolerance.
    """
    if isinstance(given, Tolerance):
        return given
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < math.inf:
        raise OperatorError(
            f"The tolerance was given as {shown(given)}; accepted are a Tolerance (see deep500.measure.tolerance), a "
            f"number from 0, and None for what the dtype allows."
        )
    return Tolerance(float(given))


def largest_size(array: Array) -> float:
    """Return the largest size of a finite element, 0 where there is none."""
    sizes = np.abs(array.astype(np.complex128 if np.iscomplexobj(array) else np.float64))
    return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))


def number(value: Any) -> str:
    """Return a real or complex number, of any dtype, with nine digits."""
    plain = complex(value) if np.iscomplexobj(value) else float(value)
    return f"{plain.real:.9g}" if plain.imag == 0 else f"{plain:.9g}"
