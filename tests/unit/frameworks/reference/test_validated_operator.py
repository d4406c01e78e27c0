from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.frameworks.reference import as_operator
from deep500.operators.validation import test_op_gradient
from tests.unit.operators.sources import cube_sum, failing
from tests.unit.operators.validation.operators import Cube

X = np.random.default_rng(0).standard_normal((3, 4))


def test_values_and_gradients_are_the_operators() -> None:
    for op in (cube_sum(), Cube()):
        there = as_operator(op)
        outputs = op.run_forward([X])
        grads = [np.ones_like(y) for y in outputs]

        for found, expected in zip(there.run_forward([X]), outputs, strict=True):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(
            there.run_backward(grads, [X], outputs)[0], op.run_backward(grads, [X], outputs)[0]
        )


def test_a_function_in_between() -> None:
    there = as_operator(Cube(), through=lambda function: lambda x: 2 * function(x))

    np.testing.assert_array_equal(there(X), 2 * X**3)
    with pytest.raises(OperatorError, match=r"It is 0\.5 times what it should be"):
        test_op_gradient(there, [X])


def test_no_backward() -> None:
    assert not as_operator(failing("")).differentiable
