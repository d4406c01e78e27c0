"""How far outputs are from what they should be: exact for integers, in float64 for all else.

What is equal differs by 0, also where both are NaN, or infinities of one sign. Where only one is NaN the difference is
NaN; an infinity differs from all else by infinity.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.core.texts import one_line, shown
from deep500.measure.metric import Direction, MetricKind, TestMetric

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "DifferenceMetric",
    "NormMetric",
    "OutputPair",
    "absolute_difference",
    "as_numbers",
    "euclidean_norm",
    "is_integer",
    "largest",
    "magnitude",
    "named_arrays",
    "paired_outputs",
    "signed_difference",
    "widened",
]

_ACCEPTED = "accepted are arrays of numbers, sequences of them, and mappings from names to them"


class DifferenceMetric(TestMetric):
    """A number that says how far the outputs are from what they should be; 0 when they are equal."""

    unit = ""
    direction = Direction.LOWER
    kind = MetricKind.SCORE

    @property
    def requires_inputs(self) -> bool:
        """False: outputs are compared with outputs."""
        return False

    def pairs(self, outputs: Any, reference_outputs: Any) -> list[OutputPair]:
        """Return each output with its reference.

        Raises:
            MeasurementError: There is no reference.
            InvalidInputError: Names, numbers or shapes of the outputs differ, or they are no numbers.
        """
        return paired_outputs(self.name, outputs, reference_outputs)


class NormMetric(DifferenceMetric):
    """A norm of the difference of all outputs."""

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the number.

        Args:
            inputs: Not used.
            outputs: An array, a sequence of arrays, or a mapping from names to arrays.
            reference_outputs: The same, of equal shapes.

        Raises:
            MeasurementError: There is no reference.
            InvalidInputError: The outputs are no numbers, or do not have the names and shapes of the reference.
        """
        return self.measure_pairs(self.pairs(outputs, reference_outputs))

    @abc.abstractmethod
    def measure_pairs(self, pairs: Sequence[OutputPair]) -> float:
        """Return the number for outputs with their references."""


@dataclass(frozen=True, slots=True)
class OutputPair:
    """An output with what it should be.

    Attributes:
        name: What it is called in messages, such as ``"output 'y'"`` or ``"output 0"``.
        actual: What the test returned.
        expected: What it should have returned, of the same shape.
    """

    name: str
    actual: NDArray[Any]
    expected: NDArray[Any]


def paired_outputs(metric: str, outputs: Any, reference_outputs: Any) -> list[OutputPair]:
    """Return each output with its reference, in the order of the reference.

    Args:
        metric: Name of the metric, for messages.
        outputs: An array, a sequence of arrays, or a mapping from names to arrays.
        reference_outputs: The same; a lone array is taken for a sequence of one.

    Raises:
        MeasurementError: There is no reference.
        InvalidInputError: Names, numbers or shapes of the outputs differ, or they are no numbers.
    """
    if reference_outputs is None:
        raise MeasurementError(f"{metric} needs reference outputs to compare with; the test was given none.")
    expected = named_arrays("reference output", reference_outputs)
    actual = named_arrays("output", outputs)
    if isinstance(outputs, Mapping) != isinstance(reference_outputs, Mapping):
        raise InvalidInputError(
            f"{metric} was given outputs of the type {type(outputs).__name__} and references of the type "
            f"{type(reference_outputs).__name__}; both must have names, or none of them."
        )
    missing = [name for name in expected if name not in actual]
    extra = [name for name in actual if name not in expected]
    if missing or extra:
        odd = [*(f"no {name}" for name in missing[:5]), *(f"no reference for {name}" for name in extra[:5])]
        raise InvalidInputError(
            f"{metric} compares the same outputs, but there are {len(actual)} of them and {len(expected)} references: "
            f"{', '.join(odd)}."
        )
    for name, array in expected.items():
        if actual[name].shape != array.shape:
            raise InvalidInputError(
                f"{metric} compares outputs of equal shapes, but {name} has the shape {actual[name].shape} and its "
                f"reference {array.shape}."
            )
    return [OutputPair(name, actual[name], array) for name, array in expected.items()]


def named_arrays(what: str, outputs: Any) -> dict[str, NDArray[Any]]:
    """Return outputs as arrays, by what they are called in messages.

    Args:
        what: What they are, for messages.
        outputs: An array, a sequence of arrays, or a mapping from names to arrays.

    Raises:
        InvalidInputError: Something is not an array of numbers.
    """
    if isinstance(outputs, Mapping):
        entries = [(f"output {name!r}", value) for name, value in outputs.items()]
    elif isinstance(outputs, Sequence) and not isinstance(outputs, (str, bytes)):
        entries = [(f"output {index}", value) for index, value in enumerate(outputs)]
    else:
        entries = [("output 0", outputs)]
    return {name: as_numbers(f"The {what} {name.removeprefix('output ')}", value) for name, value in entries}


def as_numbers(what: str, value: Any) -> NDArray[Any]:
    """Return an array of numbers.

    Args:
        what: The begin of a message about it.
        value: The array, or what NumPy can make one from.

    Raises:
        InvalidInputError: It is no array of numbers.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; tensors of a device or with a gradient
        raise InvalidInputError(f"{what} is no array: {one_line(str(error))}; {_ACCEPTED}.") from error
    if not (array.dtype.kind in "biufc" or _is_extended(array.dtype)):
        raise InvalidInputError(f"{what} is {shown(value)} of dtype {array.dtype}, no numbers; {_ACCEPTED}.")
    return array


def absolute_difference(actual: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``|actual - expected|`` element by element, for complex numbers the modulus.

    Raises:
        MeasurementError: The shapes differ.
    """
    return magnitude(signed_difference(actual, expected))


def signed_difference(actual: NDArray[Any], expected: NDArray[Any]) -> NDArray[Any]:
    """Return ``actual - expected`` element by element in float64, or complex128.

    Integers are subtracted exactly before they are rounded to float64, so that large neighbours differ by 1. An
    integer and a real number are subtracted in ``longdouble``, which is exact where that has 64 bits of precision.

    Raises:
        MeasurementError: The shapes differ.
    """
    if actual.shape != expected.shape:
        raise MeasurementError(f"Arrays of the shapes {actual.shape} and {expected.shape} have no difference.")
    if np.iscomplexobj(actual) or np.iscomplexobj(expected):
        difference = np.empty(actual.shape, np.complex128)
        difference.real = signed_difference(actual.real, expected.real)
        difference.imag = signed_difference(actual.imag, expected.imag)
        return difference
    if is_integer(actual.dtype) and is_integer(expected.dtype):
        return _integer_difference(_whole(actual), _whole(expected))
    exact_doubles = all(_fits_double(dtype) for dtype in (actual.dtype, expected.dtype))
    wide = np.float64 if exact_doubles else np.longdouble
    left, right = actual.astype(wide), expected.astype(wide)
    with np.errstate(over="ignore", invalid="ignore"):
        difference = np.asarray(np.subtract(left, right), np.float64)
    if np.isfinite(difference).all():
        return difference
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.where(same, 0.0, difference)


def widened(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in float64, or complex128."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def magnitude(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the modulus of float64 or complex128 values; NaN where a part is NaN, also beside an infinite one."""
    if not np.iscomplexobj(values):
        absolute: NDArray[np.float64] = np.abs(values)
        return absolute
    with np.errstate(over="ignore", invalid="ignore"):
        modulus = np.hypot(values.real, values.imag)
    return np.where(np.isnan(values.real) | np.isnan(values.imag), np.nan, modulus)


def euclidean_norm(values: NDArray[np.float64]) -> float:
    """Return the 2-norm of values that are not negative, without overflow or underflow on the way; 0 of none."""
    scale = largest(values)
    if scale == 0 or not math.isfinite(scale):
        return scale
    with np.errstate(under="ignore"):
        return scale * math.sqrt(float(np.sum(np.square(values / scale))))


def largest(values: NDArray[np.float64]) -> float:
    """Return the largest value, NaN when one is NaN, 0 of none."""
    return float(np.max(values)) if values.size else 0.0


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether values of a dtype are whole numbers or truth values."""
    return dtype.kind in "biu" or (_is_extended(dtype) and dtype.name.startswith(("int", "uint")))


def _integer_difference(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    """Subtract int64 or uint64 exactly: modulo 2**64, which holds every difference within one dtype."""
    if left.dtype != right.dtype:
        return _mixed_difference(left, right) if left.dtype == np.int64 else -_mixed_difference(right, left)
    larger = left >= right
    modular = np.subtract(left.view(np.uint64), right.view(np.uint64))
    distance = np.where(larger, modular, np.negative(modular)).astype(np.float64)
    return np.where(larger, distance, -distance)


def _mixed_difference(signed: NDArray[np.int64], unsigned: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Subtract uint64 from int64; below zero, where neither dtype holds the difference, in float64."""
    negative = signed < 0
    whole = _integer_difference(np.where(negative, 0, signed).astype(np.uint64), unsigned)
    return np.where(negative, signed.astype(np.float64) - unsigned.astype(np.float64), whole)


def _whole(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype == np.uint64 else array.astype(np.int64)


def _fits_double(dtype: np.dtype[Any]) -> bool:
    if is_integer(dtype):
        return dtype.itemsize < 8
    return _is_extended(dtype) or dtype.itemsize <= 8


def _is_extended(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of ``ml_dtypes``, whose kinds differ and which NumPy does not count as numbers."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"
