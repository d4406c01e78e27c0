"""Edge cases of MaxUnpool; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.max_pool import MaxPool
from deep500.operators.library.max_unpool import MaxUnpool

X = np.array([[[5.0, 6.0]]])


def test_undoes_max_pool() -> None:
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    x = np.random.default_rng(0).uniform(1, 2, (2, 3, 4, 6))
    y, indices = MaxPool(**window).forward([x])

    unpooled = MaxUnpool(**window)(y, indices)

    assert unpooled.shape == x.shape
    assert set(np.unique(unpooled)) == {0.0, *y.ravel()}
    np.testing.assert_array_equal(MaxPool(**window).forward([unpooled])[0], y)


def test_the_last_of_several_elements_stays_and_takes_the_gradient() -> None:
    operator, places = MaxUnpool(kernel_shape=[2]), np.array([[[1, 1]]])
    (y,) = operator.forward([X, places])

    assert y.tolist() == [[[0.0, 6.0, 0.0]]]
    assert operator.backward([y], [X, places], (y,))[0].tolist() == [[[0.0, 6.0]]]


def test_a_larger_output_has_zeros_at_the_end() -> None:
    inputs = [X, np.array([[[0, 2]]]), np.array([1, 1, 5])]

    assert MaxUnpool(kernel_shape=[2])(*inputs).tolist() == [[[5.0, 0.0, 6.0, 0.0, 0.0]]]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([X, np.array([[[0, 3]]])], "accepted are 0 to 2"),
        ([X, np.array([[[-1, 0]]])], "received places from -1"),
        ([X, np.array([[[0]]])], "int64 of X's shape"),
        ([X, X], "received X of shape"),
        ([X, np.array([[[0, 1]]]), np.array([1, 1, 2])], r"shapes from \[1, 1, 3\] on"),
    ],
)
def test_refusals(inputs: list, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        MaxUnpool(kernel_shape=[2]).forward(inputs)


def test_attributes_of_another_rank_are_refused() -> None:
    with pytest.raises(OperatorError, match="one, one and two entries"):
        MaxUnpool(kernel_shape=[2], strides=[1, 1])
