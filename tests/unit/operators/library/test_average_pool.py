"""Edge cases of AveragePool; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.average_pool import AveragePool
from deep500.operators.library.global_average_pool import GlobalAveragePool
from deep500.operators.library.global_max_pool import GlobalMaxPool


@pytest.mark.parametrize(("include", "expected"), [(0, [2, 3, 4]), (1, [1, 3, 2])])
def test_padding_counts_or_not(include: int, expected: list[float]) -> None:
    operator = AveragePool(kernel_shape=[2], pads=[1, 1], count_include_pad=include)

    assert operator(np.array([[[2.0, 4.0]]])).ravel().tolist() == expected


@pytest.mark.parametrize("include", [0, 1])
def test_what_ceil_mode_adds_never_counts(include: int) -> None:
    operator = AveragePool(kernel_shape=[2], strides=[2], ceil_mode=1, count_include_pad=include)

    assert operator(np.array([[[2.0, 4.0, 6.0]]])).ravel().tolist() == [3, 6]


def test_window_of_padding_only_is_zero() -> None:
    assert AveragePool(kernel_shape=[1], pads=[1, 0])(np.array([[[7.0]]])).ravel().tolist() == [0, 7]


def test_non_finite_values_stay_in_their_windows() -> None:
    y = AveragePool(kernel_shape=[2])(np.array([[[np.inf, 1.0, 2.0, np.nan]]]))

    np.testing.assert_array_equal(y.ravel(), [np.inf, 1.5, np.nan])


@pytest.mark.parametrize("operator", [AveragePool(kernel_shape=[2, 2]), GlobalAveragePool(), GlobalMaxPool()])
def test_empty_batch(operator) -> None:
    x = np.zeros((0, 2, 3, 3), np.float32)

    (y,) = operator.forward([x])

    assert y.shape[:2] == (0, 2)
    assert operator.backward([y], [x], (y,))[0].shape == x.shape


def test_global_pooling_of_sixteen_bits() -> None:
    x = np.full((1, 1, 64, 64), 100, np.float16)  # the sum is beyond the range of float16

    assert GlobalAveragePool()(x).item() == 100


def test_global_maximum_ties_and_nan() -> None:
    x = np.array([[[3.0, 3.0], [np.nan, 5.0]]])
    (y,) = GlobalMaxPool().forward([x])

    (by_x,) = GlobalMaxPool().backward([np.ones_like(y)], [x], (y,))

    np.testing.assert_array_equal(y, [[[3.0], [np.nan]]])
    assert by_x.tolist() == [[[1, 0], [1, 0]]]


def test_refusals() -> None:
    for operator in (AveragePool(kernel_shape=[2]), GlobalAveragePool(), GlobalMaxPool()):
        with pytest.raises(OperatorError, match=r"accepted is \[N, C, D1"):
            operator(np.ones(3))
        with pytest.raises(OperatorError, match="accepted are float16"):
            operator(np.ones((1, 1, 3), np.int64))
    with pytest.raises(OperatorError, match="without empty spatial axes"):
        GlobalMaxPool()(np.ones((1, 1, 0)))
    with pytest.raises(OperatorError, match="kernel_shape is missing"):
        AveragePool(kernel_shape=None)
