from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metrics._differences import (
    absolute_difference,
    as_numbers,
    euclidean_norm,
    is_integer,
    largest,
    named_arrays,
    paired_outputs,
    signed_difference,
)
from tests.unit.measure.metrics.arrays import COMPLEX, EXTENDED, FLOATS, INTEGERS, distance, pairs, rounded

Pair = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


class OnDevice:
    """A tensor that NumPy cannot read, as one of a GPU, or one that a gradient is wanted of."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        raise RuntimeError("copy it first")


def elements(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> list[float]:
    return [distance(a, b) for a, b in zip(left.ravel(), right.ravel())]


@given(pairs(INTEGERS))
def test_integers_are_subtracted_exactly(pair: Pair) -> None:
    found = absolute_difference(*pair)

    assert (found.dtype, found.shape) == (np.float64, pair[0].shape)
    np.testing.assert_array_max_ulp(found.ravel(), np.array(elements(*pair)), maxulp=1)


@given(hnp.arrays(np.int64, 4), st.sampled_from([np.int64, np.uint64]))
def test_integers_of_one_dtype_are_rounded_once(values: np.ndarray[Any, Any], dtype: type) -> None:
    left, right = values.astype(dtype), values[::-1].astype(dtype)

    np.testing.assert_array_equal(absolute_difference(left, right), elements(left, right))


@given(pairs(["float16", "float32", "float64", *EXTENDED]))
def test_floats_are_subtracted_in_double(pair: Pair) -> None:
    np.testing.assert_array_equal(absolute_difference(*pair).ravel(), np.array(elements(*pair)))


@given(pairs([*FLOATS, "int64", "uint64", *EXTENDED]))
def test_mixed_dtypes_differ_by_what_they_should_within_a_rounding_or_two(pair: Pair) -> None:
    found, expected = absolute_difference(*pair).ravel(), np.array(elements(*pair))

    # Within a rounding in longdouble, and one to float64.
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(np.float64).eps, atol=5e-324)
    assert np.array_equal(found == 0, expected == 0) or np.finfo(np.longdouble).nmant < 63


@given(pairs(COMPLEX))
def test_complex_numbers_differ_by_their_modulus(pair: Pair) -> None:
    parts = zip(elements(pair[0].real, pair[1].real), elements(pair[0].imag, pair[1].imag))
    expected = [math.nan if a != a or b != b else math.hypot(a, b) for a, b in parts]

    np.testing.assert_array_max_ulp(absolute_difference(*pair).ravel(), np.array(expected), maxulp=1)


@given(pairs([*INTEGERS, *FLOATS, *EXTENDED]))
def test_sign_is_that_of_the_first_minus_the_second(pair: Pair) -> None:
    np.testing.assert_array_equal(signed_difference(*pair), -signed_difference(*pair[::-1]))


@given(pairs([*INTEGERS, *FLOATS, *COMPLEX, *EXTENDED]))
def test_what_is_equal_differs_by_nothing(pair: Pair) -> None:
    assert not absolute_difference(pair[0], pair[0].copy()).any()


def test_large_neighbours_differ_by_one() -> None:
    top = np.array([2**63 - 1, -(2**63)], np.int64)
    assert absolute_difference(top, np.array([2**63 - 2, -(2**63) + 1])).tolist() == [1.0, 1.0]
    assert absolute_difference(top[:1], top[1:]).tolist() == [float(2**64 - 1)]
    assert signed_difference(np.array(2**64 - 1, np.uint64), np.array(2**64 - 2, np.uint64)) == 1.0
    assert signed_difference(np.array([-1], np.int64), np.array([2**64 - 1], np.uint64)).tolist() == [-(2.0**64)]


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="longdouble is no more precise than float64 here")
def test_what_a_double_does_not_hold_is_subtracted_in_longdouble() -> None:
    assert signed_difference(np.array([2**53 + 1]), np.array([2.0**53])).tolist() == [1.0]
    assert signed_difference(np.array([2.0**63]), np.array([2**63 - 1], np.uint64)).tolist() == [1.0]
    longer = np.array([1], np.longdouble) + np.longdouble(2) ** -60
    assert signed_difference(longer, np.array([1.0])).tolist() == [2.0**-60]


def test_arrays_of_other_shapes_have_no_difference() -> None:
    with pytest.raises(MeasurementError, match=r"\(3,\) and \(3, 1\)"):
        signed_difference(np.zeros(3), np.zeros((3, 1)))


@given(hnp.arrays(np.float64, st.integers(0, 20), elements=st.floats(0, allow_nan=False, allow_infinity=False)))
def test_norm_is_right_at_any_size(values: np.ndarray[Any, Any]) -> None:
    squared = sum((Fraction(value) ** 2 for value in values.tolist()), Fraction(0))
    found = euclidean_norm(values)

    if not math.isfinite(found):
        assert squared >= Fraction(np.finfo(np.float64).max) ** 2 * Fraction(999, 1000)
    else:
        error = abs(Fraction(found) ** 2 - squared)
        assert error <= squared * Fraction(1, 10**13) + Fraction(5e-324) * Fraction(found) * 8
    assert (found == 0) is (squared == 0)


def test_norm_of_what_is_not_finite() -> None:
    assert euclidean_norm(np.array([])) == 0.0
    assert euclidean_norm(np.array([1.0, math.inf])) == math.inf
    assert math.isnan(euclidean_norm(np.array([math.nan, math.inf])))
    assert euclidean_norm(np.array([3e300, 4e300])) == pytest.approx(5e300)
    assert euclidean_norm(np.array([3e-310, 4e-310])) == pytest.approx(5e-310)
    assert rounded(Fraction(10) ** 400) == math.inf


def test_largest_is_nan_when_one_is() -> None:
    assert largest(np.array([])) == 0.0
    assert largest(np.array([1.0, 3.0])) == 3.0
    assert math.isnan(largest(np.array([math.inf, math.nan])))


@pytest.mark.parametrize(
    ("name", "whole"), [("bool", True), ("uint64", True), ("float32", False), ("complex64", False), ("str", False)]
)
def test_whole_numbers_are_told_from_others(name: str, whole: bool) -> None:
    assert is_integer(np.dtype(name)) is whole
    assert is_integer(np.dtype(ml_dtypes.uint4))
    assert not is_integer(np.dtype(ml_dtypes.bfloat16))
    assert not is_integer(np.dtype(ml_dtypes.float8_e5m2))


def test_outputs_have_the_names_that_messages_use() -> None:
    assert list(named_arrays("output", {"y": 1.0, 2: [3]})) == ["output 'y'", "output 2"]
    assert list(named_arrays("output", (1.0, [2.0]))) == ["output 0", "output 1"]
    assert list(named_arrays("output", np.zeros((2, 2)))) == ["output 0"]
    assert named_arrays("output", []) == {}


def test_outputs_are_paired_by_name_or_place() -> None:
    by_name = paired_outputs("M", {"a": 1, "b": 2}, {"b": 3, "a": 4})
    assert [(pair.name, int(pair.actual), int(pair.expected)) for pair in by_name] == [
        ("output 'b'", 2, 3),
        ("output 'a'", 1, 4),
    ]
    by_place = paired_outputs("M", [np.ones(2), np.zeros(1)], (np.ones(2), np.ones(1)))
    assert [pair.actual.sum() - pair.expected.sum() for pair in by_place] == [0, -1]
    assert len(paired_outputs("M", np.ones(2), [np.ones(2)])) == 1


@pytest.mark.parametrize(
    ("outputs", "reference", "error", "message"),
    [
        ([1.0], None, MeasurementError, "M needs reference outputs"),
        ([1.0, 2.0], [1.0], InvalidInputError, "2 of them and 1 references: no reference for output 1"),
        ([1.0], [1.0, 2.0], InvalidInputError, "no output 1"),
        ({"a": 1}, {"b": 1}, InvalidInputError, "no output 'b', no reference for output 'a'"),
        ({"a": 1}, [1], InvalidInputError, "the type dict and references of the type list"),
        ([np.zeros(3)], [np.zeros((3, 1))], InvalidInputError, r"output 0 has the shape \(3,\) and its .* \(3, 1\)"),
        ([np.zeros(1)], [np.zeros(())], InvalidInputError, "shape"),
        (["text"], [1.0], InvalidInputError, "The output 0 is 'text'"),
        ([None], [1.0], InvalidInputError, "no numbers"),
        ({"y": [1.0]}, {"y": [[1.0], [2.0, 3.0]]}, InvalidInputError, "The reference output 'y' is no array"),
        (["2020-01-01"], [np.datetime64("2020-01-01")], InvalidInputError, "no numbers"),
        (OnDevice(), np.ones(2), InvalidInputError, "The output 0 is no array: copy it first"),
        (None, [1.0], InvalidInputError, "no numbers"),
    ],
)
def test_outputs_that_cannot_be_compared(outputs: Any, reference: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        paired_outputs("M", outputs, reference)


def test_numbers_of_any_kind_are_taken_as_they_are() -> None:
    bfloat16 = np.ones(2, ml_dtypes.bfloat16)
    assert as_numbers("It", bfloat16) is bfloat16
    assert as_numbers("It", 3).dtype == np.int64
    with pytest.raises(InvalidInputError, match="It is"):
        as_numbers("It", 10**30)
