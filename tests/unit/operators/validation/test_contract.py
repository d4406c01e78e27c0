from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.relu import Relu
from deep500.operators.validation.contract import (
    ContractViolation,
    as_inputs,
    first_difference,
    first_not_finite,
    is_differentiable,
    is_float,
    is_whole,
    name_of,
    run_backward,
    run_forward,
)
from tests.unit.operators.sources import failing
from tests.unit.operators.validation import operators


def test_names_and_kinds() -> None:
    assert name_of(Relu()) == "Relu"
    assert name_of(failing("")) == "failing"
    assert is_differentiable(Relu())
    assert not is_differentiable(failing(""))


def test_floats_of_every_width() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e5m2):
        assert is_float(np.ones(1, dtype))
        assert not is_whole(np.dtype(dtype))
    for dtype in (np.int8, np.uint64, bool, ml_dtypes.int4):
        assert not is_float(np.ones(1, dtype))
        assert is_whole(np.dtype(dtype))
    assert not is_float(None)


@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16])
def test_first_difference(dtype: type) -> None:
    x = np.array([[1.0, np.nan], [np.inf, -0.0]]).astype(dtype)
    y = x.copy()

    assert first_difference(x, y) is None
    y[1, 1] = 0.0  # equal
    assert first_difference(x, y) is None
    y[0, 1] = 1.0
    assert first_difference(x, y) == (0, 1)
    assert first_difference(np.array(1.0), np.array(2.0)) == ()


def test_first_not_finite() -> None:
    assert first_not_finite(np.array([[1.0, 2.0], [np.inf, 1.0]])) == (1, 0)
    assert first_not_finite(np.array(np.nan, ml_dtypes.bfloat16)) == ()
    assert first_not_finite(np.ones(3, bool)) is None
    assert first_not_finite(np.zeros((0, 2))) is None


def test_inputs_become_arrays() -> None:
    found = as_inputs(Relu(), [[1.0, 2.0], None, 3])

    assert [None if x is None else x.shape for x in found] == [(2,), None, ()]
    with pytest.raises(OperatorError, match="accepted is a list"):
        as_inputs(Relu(), np.ones((2, 2)))


def test_modified_inputs_are_put_right() -> None:
    a, b = np.ones((2, 2)), np.ones((2, 2))

    with pytest.raises(ContractViolation, match=r"modified its input 0: it was 1.0 at \[0, 1\] and is 2.0"):
        run_forward(operators.ModifiesInput(), [a, b])
    np.testing.assert_array_equal(a, 1.0)


def test_modified_outputs_are_noticed() -> None:
    class Reuses(operators.Product):
        def backward(self, grads, fwd_inputs, fwd_outputs):
            fwd_outputs[0][...] = 0
            return (None, None)

    x = np.ones((2, 2))
    with pytest.raises(ContractViolation, match="modified its output 0"):
        run_backward(Reuses(), [x], [x, x], [x @ x])


def test_gradients_of_absent_inputs() -> None:
    x = np.ones((2, 2))
    with pytest.raises(ContractViolation, match="by input 1, which is absent; accepted is None"):
        run_backward(FirstOnly(), [x], [x, None], [x])


class FirstOnly(operators.Product):
    def forward(self, inputs):
        return (inputs[0],)

    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (grads[0], grads[0])
