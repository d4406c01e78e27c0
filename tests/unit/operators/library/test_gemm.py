"""Edge cases of Gemm and MatMul; values and derivatives are in the conformance suite."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.gemm import Gemm
from deep500.operators.library.mat_mul import MatMul


def test_beta_zero_does_not_read_c() -> None:
    assert Gemm(beta=0.0)(np.ones((1, 2)), np.ones((2, 1)), np.array(np.nan)).tolist() == [[2]]


def test_integers() -> None:
    a, b, c = np.array([[2**40, 1]]), np.array([[3], [4]]), np.array(5)

    assert Gemm()(a, b, c).tolist() == [[3 * 2**40 + 9]]
    assert Gemm(alpha=0.5, beta=0.5)(np.array([[1]]), np.array([[-3]]), c).tolist() == [[-1 + 2]]
    assert MatMul()(a, b).dtype == np.int64
    assert Gemm().backward([np.ones((1, 1), np.int64)], [a, b], ()) == (None, None)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("operator", [Gemm(), MatMul()])
def test_sixteen_bits_are_accumulated_in_thirty_two(operator, dtype: type) -> None:
    y = operator(np.ones((1, 4096), dtype), np.ones((4096, 1), dtype))

    assert y.dtype == dtype
    assert y.item() == 4096


def test_inner_product_is_a_scalar() -> None:
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])

    (y,) = MatMul().forward([a, b])
    by_a, by_b = MatMul().backward([np.array(2.0)], [a, b], (y,))

    assert isinstance(y, np.ndarray)
    assert y.shape == ()
    assert (y.item(), by_a.tolist(), by_b.tolist()) == (11, [6, 8], [2, 4])


def test_empty_inner_axis_gives_zeros() -> None:
    a, b = np.zeros((2, 0)), np.zeros((0, 3))

    assert MatMul()(a, b).tolist() == Gemm()(a, b).tolist() == [[0, 0, 0]] * 2


def test_refusals() -> None:
    with pytest.raises(OperatorError, match=r"A of shape \(2, 3\) and B of shape \(2, 3\) with transA=0 and transB=0"):
        Gemm()(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(OperatorError, match="accepted are matrices"):
        Gemm()(np.ones(3), np.ones((3, 1)))
    with pytest.raises(OperatorError, match=r"C of shape \(3, 1\); accepted are shapes that broadcast to \(1, 1\)"):
        Gemm()(np.ones((1, 2)), np.ones((2, 1)), np.ones((3, 1)))
    with pytest.raises(OperatorError, match="transA is 2; accepted is 0 or 1"):
        Gemm(transA=2)
    for a, b in (((), (1,)), ((2, 3), (2,)), ((2, 3), (4, 2))):
        with pytest.raises(OperatorError, match="accepted are A "):
            MatMul()(np.ones(a), np.ones(b))
    with pytest.raises(OperatorError, match="shapes that broadcast"):
        MatMul()(np.ones((2, 1, 1)), np.ones((3, 1, 1)))
