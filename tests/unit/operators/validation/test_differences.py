from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.relu import Relu
from deep500.operators.validation.differences import (
    default_step,
    element_scales,
    is_resolved,
    noise_limit,
    numerical_gradient,
    slopes_along,
)
from tests.unit.operators.validation.operators import Cube

X = np.array([[1.0, -2.0, 0.0, 100.0]])


def test_numerical_gradient_of_a_known_function() -> None:
    g = np.array([[1.0, 0.5, -1.0, 2.0]])
    before = X.copy()

    found = numerical_gradient(Cube(), [X], [g], 0)

    np.testing.assert_allclose(found, 3 * X**2 * g, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(X, before)


def test_numerical_gradient_runs_custom_operators_in_their_call_style() -> None:
    assert numerical_gradient(Cube(), [np.array(2.0)], [np.array(1.0)], 0) == pytest.approx(12.0)


def test_numerical_gradient_needs_float64() -> None:
    with pytest.raises(OperatorError, match="is of float32; accepted is float64"):
        numerical_gradient(Relu(), [np.ones(2, np.float32)], [np.ones(2)], 0)
    with pytest.raises(OperatorError, match="absent"):
        numerical_gradient(Relu(), [None], [None], 0)


def slope(function: Any, x: np.ndarray, step: float) -> Any:
    outputs = (function(x),)
    gone, slopes = slopes_along(lambda i: (function(i[0]),), [x], outputs, 0, np.ones(x.shape), step, [0])
    return gone, slopes[0]


def test_extrapolation_is_of_fourth_order() -> None:
    x = np.array([0.3])
    errors = [abs(slope(np.exp, x, step)[1].value[0] - np.exp(0.3)) for step in (0.2, 0.1)]

    assert errors[0] / errors[1] == pytest.approx(16, rel=0.05)
    assert errors[0] == pytest.approx(0.2**4 / 480 * np.exp(0.3), rel=0.05)


def test_roundings_of_the_step_are_taken_into_account() -> None:
    x = np.array([1000.0], np.float32)  # whose neighbours are 6e-5 apart

    gone, found = slope(lambda v: v.astype(np.float64) * 3, x, 1e-3)

    assert gone[0] != 1.0
    assert found.value[0] == pytest.approx(3 * gone[0], rel=1e-9)


def test_infinities_that_do_not_move_have_no_slope() -> None:
    _, found = slope(lambda v: np.array([-np.inf, v[0]]), np.array([1.0]), 1e-3)

    assert found.value.tolist() == pytest.approx([0.0, 1.0])
    assert found.size == pytest.approx(1.001)


def test_the_steps() -> None:
    assert default_step("float64") == pytest.approx(6.06e-6, rel=0.01)
    assert default_step("float32") == pytest.approx(0.0412, rel=0.01)
    assert default_step("bfloat16") == pytest.approx(0.379, rel=0.01)


def test_scales() -> None:
    assert element_scales(np.array([0.0, 1e-9, 2.0, -4.0, 8.0])).tolist() == [2.0, 2.0, 2.0, 4.0, 8.0]
    assert element_scales(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    assert element_scales(np.array([0.0, 0.0, 3.0])).tolist() == [1.0, 1.0, 3.0]
    assert element_scales(np.zeros((0, 2))).shape == (0, 2)


def test_noise_is_measured_within_its_bounds() -> None:
    stream = np.random.default_rng(0)
    value = stream.standard_normal(1000)
    roundoff, step = 2.0**-53, 1e-5
    least, most = 9 * 8 * roundoff / step, 9 * 1e3 * roundoff * 2 / step

    def limit(sigma: float, count: int = 1000) -> float:
        again = value[:count] + sigma * stream.standard_normal(count)
        return noise_limit(value[:count], again, 1.0, 2.0, roundoff, 1e3 * roundoff, step)

    assert limit(0.0) == most  # nothing to measure
    assert limit(1e-3 * least) == pytest.approx(least)
    assert limit(3 * least) == pytest.approx(48 * least, rel=0.1)
    assert limit(most) == pytest.approx(most)
    assert limit(3 * least, 10) == most
    assert noise_limit(value, value, 1.0, 1.0, roundoff, roundoff, step) == 9 * roundoff / step  # no more than allowed


def test_what_is_resolved() -> None:
    value = np.array([1.0, 1.0, 1.0, 1.0, np.nan])
    again = np.array([1.0, 1.5, 1.0, 1.0, 1.0])
    bend = np.array([1.0, 0.0, 1.0, 1e-9, 0.0])
    bend_again = np.array([0.5, 0.0, 1.0, 1e-9, 0.0])  # smooth, jump, kink, rounding, nothing

    assert is_resolved(value, again, bend, bend_again, 1e-6).tolist() == [True, False, False, True, False]
