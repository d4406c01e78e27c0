from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.core.random import random_stream
from deep500.measure.tolerance import (
    CONFIDENCE_FACTOR,
    Tolerance,
    is_close,
    largest_violation,
    tolerance,
    unit_roundoff,
)

NAN, INF = math.nan, math.inf
LENGTHS = [1, 2, 7, 16, 100, 1000, 10_000, 100_000]
DATA = ["normal", "uniform", "equal", "cancelling"]


def vectors(dtype: Any, length: int, data: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    stream = random_stream(5, "dot", length, data)
    if data == "normal":
        left, right = stream.normal(size=(2, length))
    elif data == "uniform":
        left, right = stream.uniform(0.0, 1.0, size=(2, length))
    elif data == "equal":
        left, right = np.full((2, length), 0.1)
    else:
        left = stream.normal(size=length)
        right = np.ones(length)
        left[length // 2 : 2 * (length // 2)] = -left[: length // 2]
    return left.astype(dtype), right.astype(dtype)


def exact(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the product and the sum of the terms' sizes; products of the narrow dtypes are exact in float64."""
    terms = left.astype(np.float64) * right.astype(np.float64)
    return math.fsum(terms), math.fsum(np.abs(terms))


def summed_in(dtype: Any, terms: np.ndarray[Any, Any]) -> Any:
    """Sum one after another with a rounding after each."""
    total = np.zeros((), dtype)
    for term in terms:
        total = (total + term).astype(dtype)
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("data", DATA)
def test_real_dot_products_are_within(dtype: Any, data: str) -> None:
    for length in LENGTHS:
        left, right = vectors(dtype, length, data)
        reference, size = exact(left, right)
        allowed = tolerance(dtype, length, scale=size)

        for found in (left @ right, np.einsum("i,i", left.astype(np.float32), right.astype(np.float32)).astype(dtype)):
            assert largest_violation(found, reference, allowed) is None, (length, found, reference)


@pytest.mark.parametrize("data", DATA)
def test_worst_order_of_summation_is_within(data: str) -> None:
    left, right = vectors(np.float32, 20_000, data)
    reference, size = exact(left, right)

    found = summed_in(np.float32, left * right)

    assert is_close(found, reference, tolerance("float32", 20_000, scale=size, guaranteed=True))
    # Adding the same again and again rounds the same way, which the probabilistic bound does not expect.
    assert is_close(found, reference, tolerance("float32", 20_000, scale=size)) is (data != "equal")


@pytest.mark.parametrize("length", [2, 16, 100, 1000, 5000])
def test_missing_term_is_found(length: int) -> None:
    left, right = vectors(np.float32, length, "uniform")
    reference, size = exact(left, right)
    largest = int(np.argmax(left * right))

    wrong = np.delete(left, largest) @ np.delete(right, largest)

    assert largest_violation(wrong, reference, tolerance("float32", length, scale=size)) is not None


@pytest.mark.parametrize(
    ("dtype", "length"), [("float32", 16), ("float32", 1000), ("float16", 1000), ("float16", 10_000)]
)
def test_accumulation_in_half_precision_is_found(dtype: str, length: int) -> None:
    left, right = vectors(dtype, length, "uniform")
    reference, size = exact(left, right)
    wrong = summed_in(np.float16, left * right)

    assert largest_violation(wrong, reference, tolerance(dtype, length, scale=size)) is not None


def test_accumulation_that_was_declared_is_within_and_one_that_stagnates_is_not() -> None:
    left, right = vectors("float16", 1000, "uniform")
    reference, size = exact(left, right)
    half = summed_in(np.float16, left * right)
    assert is_close(half, reference, tolerance("float16", 1000, scale=size, accumulator="float16"))

    left, right = vectors("float16", 50_000, "uniform")
    reference, size = exact(left, right)
    stagnated = summed_in(np.float16, left * right)
    assert not is_close(stagnated, reference, tolerance("float16", 50_000, scale=0, accumulator="float16"))


@given(st.integers(1, 10**6))
def test_bound_is_the_smaller_of_highams_two(length: int) -> None:
    u = Fraction(1, 2**24)
    deterministic = float(length * u / (1 - length * u))
    probabilistic = math.expm1(CONFIDENCE_FACTOR * math.sqrt(length) * 2**-24 + float(length * u**2 / (1 - u)))
    found = tolerance("float32", length, scale=0)

    assert found.relative == pytest.approx(min(deterministic, probabilistic), rel=1e-9)
    assert found.bound == ("deterministic" if length < 16 else "probabilistic")
    assert found.absolute == pytest.approx(length * 2.0**-150)
    assert tolerance("float32", length, scale=3.0).absolute == pytest.approx(3 * found.relative + found.absolute)


def test_guaranteed_bound_is_the_deterministic_one() -> None:
    n_u = 1000 * 2.0**-24
    found = tolerance("float32", 1000, scale=0, guaranteed=True)

    assert (found.relative, found.bound) == (pytest.approx(n_u / (1 - n_u)), "deterministic")
    with pytest.raises(MeasurementError, match="no meaningful tolerance"):
        tolerance("float32", 2**24, guaranteed=True)


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("float16", 11),
        ("float32", 24),
        ("float64", 53),
        ("complex64", 24),
        ("bfloat16", 8),
        (ml_dtypes.float8_e4m3fn, 4),
        ("float8_e5m2", 3),
        ("float4_e2m1fn", 2),
    ],
)
def test_unit_roundoff_is_half_the_distance_to_the_next_number(dtype: Any, bits: int) -> None:
    assert unit_roundoff(dtype) == 2.0**-bits


@pytest.mark.parametrize("dtype", ["int8", "uint64", "bool", "int4"])
def test_integers_are_exact(dtype: str) -> None:
    assert unit_roundoff(dtype) == 0.0
    assert tolerance(dtype, 1000, scale=1e6) == Tolerance(0.0, 0.0, "exact")


def test_narrow_dtypes_are_summed_in_single_and_rounded_once() -> None:
    single = tolerance("float32", 500, scale=0).relative

    for dtype, u in (("float16", 2.0**-11), ("bfloat16", 2.0**-8), ("float8_e4m3fn", 2.0**-4)):
        found = tolerance(dtype, 500, scale=0)
        assert found.relative == pytest.approx((1 + single) * (1 + u) - 1)
        assert found == tolerance(dtype, 500, scale=0, accumulator="float32")
        assert tolerance(dtype, 1, accumulator=dtype, scale=0).relative == pytest.approx(u / (1 - u))
    assert tolerance("float32", 500, accumulator="float16", scale=0).relative > 100 * single
    assert tolerance("float32", 500, accumulator="float64", scale=0).relative == pytest.approx(2.0**-24, rel=1e-3)


def test_complex_products_are_within() -> None:
    stream = random_stream(5, "complex")
    for length in (1, 5, 1000, 50_000):
        parts = stream.normal(size=(4, length)).astype(np.float32)
        left, right = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
        terms = left.astype(np.complex128) * right.astype(np.complex128)
        allowed = tolerance("complex64", length, scale=float(np.abs(terms).sum()))

        assert is_close(left @ right, terms.sum(), allowed)
        assert tolerance("complex64", length).relative == pytest.approx(
            math.sqrt(2) * tolerance("float32", 2 * length).relative
        )


@pytest.mark.parametrize(("dtype", "length"), [("float16", 10**6), ("bfloat16", 10**4), ("float8_e5m2", 8)])
def test_bound_that_allows_anything_is_refused(dtype: str, length: int) -> None:
    with pytest.raises(MeasurementError, match=r"no meaningful tolerance.*accumulator"):
        tolerance(dtype, length, accumulator=dtype)
    assert tolerance(dtype, length).relative < 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "float33"}, "dtype"),
        ({"dtype": None}, "dtype"),
        ({"reduction_length": 0}, "whole numbers from 1"),
        ({"reduction_length": 2.5}, "whole numbers from 1"),
        ({"reduction_length": True}, "whole numbers from 1"),
        ({"scale": -1}, "scale"),
        ({"scale": NAN}, "scale"),
        ({"scale": "1"}, "scale"),
        ({"accumulator": "int32"}, "floating dtypes"),
        ({"accumulator": "none"}, "dtype"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        tolerance(**{"dtype": "float32", **arguments})


@pytest.mark.parametrize(("relative", "absolute"), [(-1e-9, 0), (0, -1), (NAN, 0), (INF, 0), ("1", 0), (True, 0)])
def test_tolerances_that_are_not_accepted(relative: Any, absolute: Any) -> None:
    with pytest.raises(InvalidInputError, match="tolerance is"):
        Tolerance(relative, absolute)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 1), st.floats(0, 10))
def test_close_is_what_the_formula_says(actual: float, reference: float, relative: float, absolute: float) -> None:
    error, allowed = abs(actual - reference), absolute + relative * abs(reference)

    assert is_close(actual, reference, Tolerance(relative, absolute)) is (error <= allowed)


def test_violation_is_the_farthest_beyond_what_is_allowed() -> None:
    reference = np.array([[1.0, 1000.0], [0.0, 5.0]])
    actual = np.array([[1.01, 1005.0], [0.0, 5.0]])  # 10 times and 5 times what is allowed

    found = largest_violation(actual, reference, Tolerance(1e-3))

    assert found is not None
    assert (found.index, found.count) == ((0, 0), 2)
    assert (found.actual, found.reference) == (1.01, 1.0)
    assert (found.error, found.allowed) == pytest.approx((0.01, 0.001))
    assert "2 elements differ by more than allowed, most of all [0, 0]: it is 1.01, should be 1" in str(found)


@pytest.mark.parametrize(
    ("actual", "reference", "close"),
    [
        (NAN, NAN, True),
        (NAN, 0.0, False),
        (0.0, NAN, False),
        (INF, INF, True),
        (INF, -INF, False),
        (1.0, INF, False),
        (INF, 1.0, False),
        ([], [], True),
        (np.array([2**63 - 1]), np.array([2**63 - 2]), False),
        (np.array([1.5], ml_dtypes.bfloat16), np.array([1.0]), True),
        (np.array([1.75], ml_dtypes.bfloat16), np.array([1.0]), False),
        (np.array([1 + 0.5j]), np.array([1.0]), True),
        (np.array([1 + 0.6j]), np.array([1.0]), False),
        (np.array(True), np.array(False), False),
    ],
)
def test_special_values(actual: Any, reference: Any, close: bool) -> None:
    allowed = Tolerance(0.0) if np.asarray(actual).dtype.kind in "ib" else Tolerance(0.5)

    assert is_close(actual, reference, allowed) is close
    assert (largest_violation(actual, reference, allowed) is None) is close


def test_nan_is_the_worst_violation_and_one_element_is_one() -> None:
    found = largest_violation([9.0, NAN, 1.0], [1.0, 1.0, 1.0], Tolerance(0.5))

    assert found is not None
    assert found.index == (1,)
    assert math.isnan(found.error)
    assert str(largest_violation([9.0], [1.0], Tolerance(0.5))).startswith("1 element differs")


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InvalidInputError, match=r"\(2,\) and its reference \(2, 1\)"):
        is_close(np.zeros(2), np.zeros((2, 1)), Tolerance(0))
    with pytest.raises(InvalidInputError, match="The actual value"):
        is_close(["a"], [1.0], Tolerance(0))
    with pytest.raises(InvalidInputError, match="accepted is a Tolerance"):
        is_close([1.0], [1.0], 1e-3)  # type: ignore[arg-type]
