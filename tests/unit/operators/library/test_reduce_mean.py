"""Edge cases of the reductions; values and derivatives are in the conformance suite."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.reduce_mean import ReduceMean
from deep500.operators.library.reduce_sum import ReduceSum

NO_AXES = np.zeros(0, np.int64)


@pytest.mark.parametrize("axes", [[], [NO_AXES]])
def test_no_axes_are_all_or_none(axes: list) -> None:
    x = np.array([[1.0, 3.0]])

    assert ReduceMean()(x, *axes).tolist() == [[2]]
    assert ReduceMean(keepdims=0)(x, *axes).tolist() == 2
    assert ReduceSum(noop_with_empty_axes=1)(x, *axes).tolist() == [[1, 3]]


def test_scalars() -> None:
    for operator in (ReduceMean(), ReduceSum(keepdims=0)):
        y = operator(np.array(3.0))
        assert isinstance(y, np.ndarray)
        assert y.shape == ()
        assert operator.backward([y], [np.array(1.0)], (y,))[0].tolist() == 3


def test_nothing_to_reduce() -> None:
    x, axis = np.zeros((0, 2)), np.array([0])

    assert ReduceSum()(x, axis).tolist() == [[0, 0]]
    assert np.isnan(ReduceMean()(x, axis)).all()
    assert ReduceMean()(x.astype(np.int32), axis).tolist() == [[0, 0]]
    assert ReduceMean().backward([np.ones((1, 2))], [x, axis], ())[0].shape == (0, 2)


def test_integers() -> None:
    assert ReduceMean()(np.array([-3, -4], np.int32)).tolist() == [-3]
    assert ReduceMean()(np.array([2**31 - 1] * 2, np.int32)).tolist() == [2**31 - 1]
    assert ReduceSum()(np.array([2**31 - 1, 1], np.int32)).tolist() == [-(2**31)]
    assert ReduceMean()(np.array([2**63, 2], np.uint64)).tolist() == [2**62 + 1]
    assert ReduceSum().backward([np.array([1])], [np.array([1, 2])], ()) == (None,)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bits_are_summed_in_thirty_two(dtype: type) -> None:
    assert ReduceSum()(np.ones(4096, dtype)).tolist() == [4096]
    assert ReduceMean()(np.full(4096, 100, dtype)).tolist() == [100]


def test_gradient_can_be_written_to() -> None:
    x = np.ones((2, 2))

    gradient = ReduceSum().backward([np.ones((1, 1))], [x], ())[0]
    gradient += 1

    assert gradient.tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("operator", [ReduceMean(), ReduceSum()])
def test_refusals(operator) -> None:
    with pytest.raises(OperatorError, match="an entry of axes is 2 for a tensor of rank 2"):
        operator(np.ones((2, 2)), np.array([2]))
    with pytest.raises(OperatorError, match="axes that differ"):
        operator(np.ones((2, 2)), np.array([1, -1]))
    with pytest.raises(OperatorError, match="accepted is int64 of one dimension"):
        operator(np.ones((2, 2)), np.array([0.5]))
    with pytest.raises(OperatorError, match="received data of bool"):
        operator(np.ones(2, np.bool_))
