"""Edge cases of MaxPool; values and derivatives are in the conformance suite."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.max_pool import MaxPool


def signal(*values: float, dtype: type = np.float64) -> np.ndarray:
    return np.array([[values]], dtype)


def gradient(operator: MaxPool, x: np.ndarray) -> list[float]:
    y, indices = operator.forward([x])
    (by_x,) = operator.backward([np.arange(1, y.size + 1).reshape(y.shape).astype(x.dtype), None], [x], (y, indices))
    # The second output is optional, and storage_order changes it.
    (again,) = operator.backward([np.arange(1, y.size + 1).reshape(y.shape).astype(x.dtype)], [x], (y,))
    np.testing.assert_array_equal(by_x, again)
    return by_x.ravel().tolist()


def test_first_of_equal_maxima_takes_the_gradient() -> None:
    operator = MaxPool(kernel_shape=[3])

    assert operator(signal(2, 2, 2, 1))[1].ravel().tolist() == [0, 1]
    assert gradient(operator, signal(2, 2, 2, 1)) == [1, 2, 0, 0]


def test_gradients_of_overlapping_windows_add_up() -> None:
    assert gradient(MaxPool(kernel_shape=[2]), signal(0, 5, 1)) == [0, 3, 0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_nan_is_the_maximum_and_the_first_one_counts(dtype: type) -> None:
    x = signal(1, np.nan, np.inf, np.nan, dtype=dtype)
    operator = MaxPool(kernel_shape=[2])

    y, indices = operator.forward([x])

    assert np.isnan(y.astype(np.float64)).all()
    assert indices.ravel().tolist() == [1, 1, 3]
    assert gradient(operator, x) == [0, 3, 0, 3]


def test_minus_infinity_is_not_taken_for_padding() -> None:
    operator = MaxPool(kernel_shape=[2], pads=[1, 1])
    x = signal(-np.inf, -np.inf)

    y, indices = operator.forward([x])

    assert y.ravel().tolist() == [-np.inf] * 3
    assert indices.ravel().tolist() == [0, 0, 1]
    assert gradient(operator, x) == [3, 3]


def test_window_of_padding_only() -> None:
    operator = MaxPool(kernel_shape=[1], pads=[1, 0])

    assert operator(signal(7.0))[0].ravel().tolist() == [-np.inf, 7]
    assert operator(signal(7.0))[1].ravel().tolist() == [-1, 0]
    assert gradient(operator, signal(7.0)) == [2]


@pytest.mark.parametrize(("dtype", "lowest"), [(np.int8, -128), (np.uint8, 0)])
def test_integers(dtype: type, lowest: int) -> None:
    operator = MaxPool(kernel_shape=[2], pads=[1, 0])
    x = signal(lowest, lowest + 3, dtype=dtype)

    y, indices = operator.forward([x])

    assert y.dtype == dtype
    assert y.ravel().tolist() == [lowest, lowest + 3]
    assert indices.ravel().tolist() == [0, 1]
    assert operator.backward([y, None], [x], (y, indices)) == (None,)


def test_column_major_indices_have_the_same_gradient() -> None:
    x = np.random.default_rng(0).permutation(np.arange(24.0)).reshape(1, 2, 4, 3)

    assert gradient(MaxPool(kernel_shape=[2, 2], storage_order=1), x) == gradient(MaxPool(kernel_shape=[2, 2]), x)


def test_empty_batch() -> None:
    x = np.zeros((0, 2, 3, 3))

    y, indices = MaxPool(kernel_shape=[2, 2]).forward([x])

    assert y.shape == indices.shape == (0, 2, 2, 2)
    assert MaxPool(kernel_shape=[2, 2]).backward([y, None], [x], (y, indices))[0].shape == x.shape


def test_ceil_mode_drops_a_window_that_starts_in_the_padding() -> None:
    assert MaxPool(kernel_shape=[1], strides=[2], pads=[0, 1], ceil_mode=1)(signal(1, 2))[0].shape == (1, 1, 1)
    assert MaxPool(kernel_shape=[2], strides=[2], ceil_mode=1)(signal(1, 2, 3))[0].ravel().tolist() == [2, 3]


def test_refusals() -> None:
    with pytest.raises(OperatorError, match="kernel_shape is missing"):
        MaxPool(kernel_shape=None)
    with pytest.raises(OperatorError, match="accepted are floats, int8 and uint8"):
        MaxPool(kernel_shape=[2])(signal(1, 2, dtype=np.int32))
    with pytest.raises(OperatorError, match="rank 3 or more"):
        MaxPool(kernel_shape=[])(np.ones((2, 2)))
    with pytest.raises(OperatorError, match="storage_order is 2; accepted is 0 or 1"):
        MaxPool(kernel_shape=[2], storage_order=2)
