from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.metric import Direction
from deep500.workloads._accuracy import error_score, relative_l2_error


def test_error_is_relative_to_all_that_is_expected() -> None:
    expected = [np.array([3.0]), np.array([[0.0, 4.0]])]
    values = [np.array([3.0]), np.array([[0.5, 4.0]])]

    assert relative_l2_error(values, expected) == pytest.approx(0.1)
    assert relative_l2_error(expected, expected) == 0.0


def test_tensor_of_rounding_errors_does_not_decide() -> None:
    expected = [np.array([1e-9]), np.array([1.0])]

    assert relative_l2_error([np.array([-1e-9]), np.array([1.0])], expected) < 1e-8


def test_nothing_expected_gives_the_distance_itself() -> None:
    assert relative_l2_error([np.array([3.0, 4.0])], [np.zeros(2)]) == 5.0
    assert relative_l2_error([np.zeros((0, 3))], [np.zeros((0, 3))]) == 0.0
    assert relative_l2_error([], []) == 0.0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, np.int64, bool])
def test_every_dtype_is_compared_in_float64(dtype: type) -> None:
    expected = np.array([1, 0, 1]).astype(dtype)
    values = np.array([1, 1, 1]).astype(dtype)

    assert relative_l2_error([values], [expected]) == pytest.approx(1 / math.sqrt(2))


def test_equal_infinities_and_nan_are_no_error() -> None:
    both = np.array([np.nan, np.inf, -np.inf, 2.0])

    assert relative_l2_error([both.copy()], [both]) == 0.0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_result_that_should_be_finite_has_no_distance(value: float) -> None:
    for values, expected in (([value], [1.0]), ([1.0], [value])):
        with pytest.raises(MeasurementError, match="not finite where those of the NumPy reference are"):
            relative_l2_error([np.array(values)], [np.array(expected)])


def test_other_shape_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="shape"):
        relative_l2_error([np.zeros((2, 3))], [np.zeros((3, 2))])


def test_score_is_better_when_lower() -> None:
    score = error_score("error", [np.array([1.5])], [np.array([1.0])])

    assert (score.name, score.value, score.direction) == ("error", 0.5, Direction.LOWER)
