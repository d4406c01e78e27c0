r"""How far a result may be from the exact one, from its dtype and the length of its reductions.

A sum of :math:`n` products whose terms' sizes add up to :math:`s = \sum |x_i y_i|` is computed with an error of at most
:math:`\gamma s`, in any order, where with the unit roundoff :math:`u` of the accumulator :math:`\gamma` is the smaller
of

.. math:: \gamma_n = \frac{n u}{1 - n u}, \qquad
          \tilde\gamma_n(\lambda) = \exp\!\left(\lambda \sqrt n u + \frac{n u^2}{1 - u}\right) - 1
          \approx \lambda \sqrt n u.

The first, deterministic, always holds. The second, probabilistic, is the smaller one from :math:`n = 16` on, with
:math:`\lambda = 4` (:data:`CONFIDENCE_FACTOR`); it takes rounding errors as independent and of mean 0. They are not
where thousands of equal terms are added one after another, each with the same error: there ask for the ``guaranteed``
one.

Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed. 2002, sections 3.1 and 3.6;
N. J. Higham, T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41(5), 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.core.texts import shown
from deep500.measure.metrics._differences import absolute_difference, as_numbers, is_integer, magnitude, widened

__all__ = ["CONFIDENCE_FACTOR", "Tolerance", "Violation", "is_close", "largest_violation", "tolerance", "unit_roundoff"]

#: Higham and Mary's lambda. Independent rounding errors of mean 0 that are all as large as they can be break the
#: probabilistic bound with a probability of at most 2 exp(-lambda**2 / 2), 7e-4; those of real sums are so much smaller
#: that it lies 12 of their standard deviations away, or more.
CONFIDENCE_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What ``|actual - reference| <= absolute + relative * |reference|`` allows.

    Attributes:
        relative: Share of the reference.
        absolute: In the unit of the values.
        bound: Where it comes from: ``"exact"`` (integers), ``"deterministic"``, ``"probabilistic"``, or ``"given"``.
    """

    relative: float
    absolute: float = 0.0
    bound: str = "given"

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value in (("relative", self.relative), ("absolute", self.absolute)):
            if not _is_number(value) or not 0 <= value < math.inf:
                raise InvalidInputError(f"The {name} tolerance is {shown(value)}; accepted are finite numbers from 0.")


@dataclass(frozen=True, slots=True)
class Violation:
    """The element that is farthest beyond what is allowed, in multiples of that.

    Attributes:
        index: Its index.
        actual: Its value.
        reference: What it should be.
        error: The absolute difference; NaN when only one of both is NaN.
        allowed: What was allowed.
        count: How many elements are beyond what is allowed for them.
    """

    index: tuple[int, ...]
    actual: complex
    reference: complex
    error: float
    allowed: float
    count: int

    def __str__(self) -> str:
        """Return the violation as a sentence."""
        return (
            f"{self.count} element{'s differ' if self.count > 1 else ' differs'} by more than allowed, most of all "
            f"{list(self.index)}: it is {self.actual:.9g}, should be {self.reference:.9g}, and differs by "
            f"{self.error:.3g} where {self.allowed:.3g} is allowed"
        )


def unit_roundoff(dtype: Any) -> float:
    """Return the largest relative error of rounding to nearest, half the distance from 1 to the next number.

    It is 0 of integers and truth values; of complex numbers it is that of their parts.

    Args:
        dtype: A dtype or its name, those of ``ml_dtypes`` included.

    Raises:
        InvalidInputError: It is no dtype of numbers.

    Example:
        >>> unit_roundoff("float32") == 2**-24, unit_roundoff("bfloat16") == 2**-8, unit_roundoff("int8")
        (True, True, 0.0)
    """
    found = numpy_dtype(dtype)
    return 0.0 if is_integer(found) else float(_finfo(found).eps) / 2


def tolerance(
    dtype: Any, reduction_length: int = 1, *, scale: float = 1.0, accumulator: Any = None, guaranteed: bool = False
) -> Tolerance:
    r"""Return how far a sum of products may be from the exact one.

    ``relative`` is :math:`\gamma`, the smaller of the deterministic :math:`\gamma_n` and the probabilistic
    :math:`\tilde\gamma_n(4)` (see above, and ``bound`` for which); where the result is narrower than the accumulator,
    one rounding to it is added. ``absolute`` is :math:`\gamma s` plus half the smallest number for each rounding
    (underflow), so that a result near 0 of large terms may be as wrong as the terms' size makes it. Both together are
    at most twice what is needed. For a complex dtype each part is a reduction of :math:`2 n`, and the modulus at most
    :math:`\sqrt 2` times a part.

    Args:
        dtype: Dtype of the result, those of ``ml_dtypes`` included; integers are exact.
        reduction_length: Number of products in the sum; for other computations the roundings on the longest path.
        scale: Sum of the sizes of the terms, in the unit of the result.
        accumulator: Dtype that is summed in; by default float32 for narrower ones, which is what matrix units, NumPy
            and the frameworks do, else the dtype itself.
        guaranteed: Whether to take the deterministic bound however long the sum is.

    Raises:
        InvalidInputError: An argument is not accepted.
        MeasurementError: The bound reaches 1: every result, 0 among them, would be within it.

    Example:
        >>> tolerance("float32", 1000).relative
        7.539...e-06
        >>> tolerance("float32", 15).bound, tolerance("float32", 16).bound, tolerance("int64", 9).bound
        ('deterministic', 'probabilistic', 'exact')
    """
    length, scale = _checked_length(reduction_length), _checked_scale(scale)
    result = numpy_dtype(dtype)
    if is_integer(result):
        return Tolerance(0.0, 0.0, "exact")
    summed = _accumulator(result, accumulator)
    is_complex = result.kind == "c"
    bound, name = _bound(unit_roundoff(summed), 2 * length if is_complex else length, guaranteed)
    relative = bound * (math.sqrt(2) if is_complex else 1.0)
    underflow = float(_finfo(summed).smallest_subnormal) / 2 * length
    if _finfo(result).eps > _finfo(summed).eps:
        rounding = unit_roundoff(result)
        relative = (1 + relative) * (1 + rounding) - 1
        underflow += float(_finfo(result).smallest_subnormal) / 2
    if not relative < 1:
        raise MeasurementError(
            f"Sums of {length} terms in {summed.name} have no meaningful tolerance: the bound is {relative:.3g} of the "
            "terms' size, so that 0 would be right. Name the accumulator's dtype where it is a wider one."
        )
    return Tolerance(relative, relative * scale + underflow, name)


def is_close(actual: Any, reference: Any, tolerance: Tolerance) -> bool:
    """Whether every element is within the tolerance; see :func:`largest_violation`.

    Raises:
        InvalidInputError: The arrays are no numbers or differ in shape.

    Example:
        >>> is_close([1.0, 2.0], [1.0, 2.001], Tolerance(1e-3))
        True
    """
    return largest_violation(actual, reference, tolerance) is None


def largest_violation(actual: Any, reference: Any, tolerance: Tolerance) -> Violation | None:
    """Return the element that is farthest beyond the tolerance, ``None`` when all are within.

    Equal NaNs and equal infinities are within; any other NaN or infinity is not, whatever is tolerated.

    Args:
        actual: An array.
        reference: What it should be.
        tolerance: What is allowed.

    Raises:
        InvalidInputError: The arrays are no numbers or differ in shape.
    """
    found, wanted = as_numbers("The actual value", actual), as_numbers("The reference", reference)
    if found.shape != wanted.shape:
        raise InvalidInputError(
            f"The value has the shape {found.shape} and its reference {wanted.shape}; accepted are equal shapes."
        )
    if not isinstance(tolerance, Tolerance):
        raise InvalidInputError(f"The tolerance is {shown(tolerance)}; accepted is a Tolerance, see tolerance().")
    error = absolute_difference(found, wanted)
    size = magnitude(widened(wanted))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # What is not finite and differs is wrong by any measure, so no share of it is allowed.
        allowed = np.where(np.isfinite(size), tolerance.absolute + tolerance.relative * size, 0.0)
        beyond = ~(error <= allowed)
        times = np.where(beyond, np.where(np.isnan(error), np.inf, error / allowed), 0.0)
    count = int(beyond.sum())
    if not count:
        return None
    index = np.unravel_index(int(np.argmax(times)), found.shape)
    return Violation(
        tuple(map(int, index)),
        widened(found[index]).item(),
        widened(wanted[index]).item(),
        float(error[index]),
        float(allowed[index]),
        count,
    )


def _bound(roundoff: float, length: int, guaranteed: bool) -> tuple[float, str]:
    deterministic = length * roundoff / (1 - length * roundoff) if length * roundoff < 1 else math.inf
    if guaranteed:
        return deterministic, "deterministic"
    exponent = CONFIDENCE_FACTOR * math.sqrt(length) * roundoff + length * roundoff**2 / (1 - roundoff)
    probabilistic = math.expm1(exponent) if exponent < 1 else math.inf
    return min((deterministic, "deterministic"), (probabilistic, "probabilistic"))


def _accumulator(result: np.dtype[Any], accumulator: Any) -> np.dtype[Any]:
    if accumulator is None:
        narrow = result.kind != "c" and result.itemsize < 4
        return np.dtype(np.float32) if narrow else result
    summed = numpy_dtype(accumulator)
    if is_integer(summed):
        raise InvalidInputError(f"The accumulator of {result.name} is {summed.name}; accepted are floating dtypes.")
    return summed


def _finfo(dtype: np.dtype[Any]) -> Any:
    """Return the limits of a floating dtype, also of one of ``ml_dtypes`` and, for a complex one, of its parts."""
    import ml_dtypes

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _checked_length(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidInputError(f"The reduction length is {shown(value)}; accepted are whole numbers from 1.")
    return int(value)


def _checked_scale(value: Any) -> float:
    if not _is_number(value) or not 0 <= value < math.inf:
        raise InvalidInputError(f"The scale is {shown(value)}; accepted are finite numbers from 0.")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
