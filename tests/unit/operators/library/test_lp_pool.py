"""Edge cases of the operators that take Lp norms; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.global_lp_pool import GlobalLpPool
from deep500.operators.library.lp_normalization import LpNormalization
from deep500.operators.library.lp_pool import LpPool
from deep500.operators.operator import Operator

OPERATORS = [LpPool(kernel_shape=[2]), GlobalLpPool(), LpNormalization(), LpNormalization(p=1)]


def test_known_values() -> None:
    x = np.array([[[3.0, -4.0, 0.0]]])

    assert LpPool(kernel_shape=[2])(x).tolist() == [[[5.0, 4.0]]]
    assert LpPool(kernel_shape=[2], p=1, pads=[1, 0])(x).tolist() == [[[3.0, 7.0, 4.0]]]
    assert GlobalLpPool()(x).tolist() == [[[5.0]]]
    assert LpNormalization(p=1)(x * 2).tolist() == [[[3 / 7, -4 / 7, 0.0]]]


@pytest.mark.parametrize("operator", OPERATORS)
def test_zeros_have_no_gradient(operator: Operator) -> None:
    x = np.zeros((1, 2, 3), np.float32)
    outputs = operator.forward([x])

    (by_x,) = operator.backward([np.ones_like(outputs[0])], [x], outputs)

    assert not outputs[0].any()
    assert by_x.shape == x.shape
    assert not by_x.any()


@pytest.mark.parametrize("operator", OPERATORS)
def test_empty_batch(operator: Operator) -> None:
    x = np.zeros((0, 2, 3), np.float32)
    (y,) = operator.forward([x])

    assert y.shape[0] == 0
    assert operator.backward([y], [x], (y,))[0].shape == x.shape


@pytest.mark.parametrize("operator", OPERATORS)
def test_integers_are_refused(operator: Operator) -> None:
    with pytest.raises(OperatorError, match="accepted are float16"):
        operator.forward([np.ones((1, 2, 3), np.int32)])


def test_refusals() -> None:
    with pytest.raises(OperatorError, match="rank 3 or more"):
        LpPool(kernel_shape=[2]).forward([np.ones((1, 2))])
    with pytest.raises(OperatorError, match=r"accepted is \[N, C, D1"):
        GlobalLpPool().forward([np.ones(3)])
    with pytest.raises(OperatorError, match="accepted is 1 or 2"):
        LpNormalization(p=3)
    with pytest.raises(OperatorError, match="axis is 3"):
        LpNormalization(axis=3).forward([np.ones((1, 2))])
    with pytest.raises(OperatorError, match="an integer from 1 on"):
        LpPool(kernel_shape=[2], p=0)
