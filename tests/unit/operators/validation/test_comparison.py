from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.measure.tolerance import Tolerance, tolerance
from deep500.operators.validation.comparison import allowed_for, as_tolerance, compare, largest_size


def test_the_worst_element_of_what_is_close() -> None:
    found = compare(np.array([[1.0, 2.0], [np.nan, np.inf]]), np.array([[1.0, 2.1], [np.nan, np.inf]]), Tolerance(0.1))

    assert found.is_close
    assert (found.index, found.actual, found.reference) == ((0, 1), 2.0, 2.1)
    assert found.error == pytest.approx(0.1)
    assert found.allowed == pytest.approx(0.21)
    assert found.relative_error == pytest.approx(0.1 / 2.1)


def test_violations_are_counted() -> None:
    found = compare(np.array([1.0, 5.0, 9.0]), np.array([1.0, 2.0, 3.0]), Tolerance(0.0, 1.0))

    assert (found.index, found.count, found.is_close) == ((2,), 2, False)
    assert str(found) == "at [2] it is 9, should be 3 and differs by 6 where 1 is allowed"


def test_odd_arrays() -> None:
    assert compare(np.zeros((0, 2)), np.zeros((0, 2)), Tolerance(0.0)).index is None
    assert compare(np.array(1.0), np.array(1.0), Tolerance(0.0)).relative_error == 0.0
    assert compare(np.array([1 + 1j]), np.array([1 + 2j]), Tolerance(0.0)).error == 1.0
    assert compare(np.ones(2, ml_dtypes.bfloat16), np.ones(2), Tolerance(0.0)).is_close
    assert compare(np.ones(1), np.zeros(1), Tolerance(0.0)).relative_error == math.inf
    assert not compare(np.array([2**62 + 1]), np.array([2**62]), Tolerance(0.0)).is_close


def test_what_is_allowed() -> None:
    single, double = np.ones(2, np.float32), np.full(2, 4.0)

    assert allowed_for(None, single, double, 9) == tolerance("float32", 9, scale=4.0)
    assert allowed_for(None, double, single, 9) == tolerance("float32", 9, scale=1.0)
    assert allowed_for(None, double, double, 9, factor=2.0).relative == 2 * tolerance("float64", 9).relative
    assert allowed_for(None, np.ones(2, np.int64), np.ones(2, np.int32), 9) == Tolerance(0.0, 0.0, "exact")
    assert allowed_for(None, np.ones(2, np.complex64), double, 9).relative == tolerance("complex64", 9).relative
    assert allowed_for(0.5, single, double, 9) == Tolerance(0.5, 2.0)
    assert allowed_for(Tolerance(0.5), single, double, 9) == Tolerance(0.5)
    for wrong in (True, -1.0, math.inf, "1"):
        with pytest.raises(OperatorError, match="The tolerance was given as"):
            as_tolerance(wrong)


def test_sizes() -> None:
    assert largest_size(np.array([1.0, -3.0, np.inf, np.nan])) == 3.0
    assert largest_size(np.array([3 + 4j])) == 5.0
    assert largest_size(np.zeros(0)) == 0.0
