"""What is special about the numbers of each native operator: NaN, infinities, ties, cancellation, the last bit."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.frameworks import FRAMEWORKS
from deep500.training.optimizers.adam import AdamOptimizer
from native_ops import AdamStep, BatchNorm, IPow, MaxPool2d, SoftmaxCrossEntropy, SparseTopK
from tests.conformance.native_op_cases import compile_all, sparse_topk
from tests.unit.training.support import LinearExecutor

NAN, INF = math.nan, math.inf

each_dtype = pytest.mark.parametrize(
    "dtype", [np.dtype(d) for d in (np.float32, np.float64, ml_dtypes.bfloat16, np.float16)], ids=str
)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    compile_all()


def test_ipow_of_every_exponent() -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0, 2.0, INF, -INF, NAN])
    for power in (0, 1, 2, 3, 63, -1, -2, 2**62, -(2**62), 2**63 - 1, -(2**63)):
        op = IPow(power=power)
        with np.errstate(all="ignore"):
            size = np.float_power(np.abs(x), power)  # as a float, the largest powers would be even
        np.testing.assert_array_equal(op(x), np.copysign(size, x) if power % 2 else size)
        (gradient,) = op.run_backward([np.ones(8)], [x], [None])
        if power == 0:
            assert gradient.tolist() == [0.0] * 8
        else:
            assert gradient[2] == float(power)
    assert IPow(power=1).run_backward([np.full(8, 3.0)], [x], [None])[0].tolist() == [3.0] * 8


def test_ipow_has_second_derivatives() -> None:
    if not FRAMEWORKS.get("pytorch").REQUIREMENT.is_installed():
        pytest.skip("pytorch is not installed")
    import torch

    for power in (-2, 0, 1, 2, 5):
        x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradgradcheck(FRAMEWORKS.get("pytorch").custom_op(IPow(power=power)), (x,))


def test_maxpool2d_takes_nan_and_the_first_of_equals() -> None:
    x = np.array([[[[1.0, 1.0, NAN], [0.0, NAN, 1.0], [-INF, -INF, -INF], [-INF, -INF, -INF]]]])
    y, indices = MaxPool2d(kernel_shape=(2, 2))(x)

    np.testing.assert_array_equal(y[0, 0], [[NAN, NAN], [NAN, NAN], [-INF, -INF]])
    assert indices[0, 0].tolist() == [[4, 2], [4, 4], [6, 7]]
    assert MaxPool2d(kernel_shape=(1, 2))(x[:, :, :1, :2])[1].item() == 0


def test_maxpool2d_windows_in_the_padding() -> None:
    op = MaxPool2d(kernel_shape=(1, 1), pads=(1, 1, 0, 0))
    x = np.ones((1, 1, 1, 1))
    y, indices = op(x)
    (gradient,) = op.run_backward([np.full((1, 1, 2, 2), 5.0), None], [x], [y, indices])

    assert y[0, 0].tolist() == [[-INF, -INF], [-INF, 1.0]]
    assert indices[0, 0].tolist() == [[-1, -1], [-1, 0]]
    assert gradient.tolist() == [[[[5.0]]]]


def test_maxpool2d_refuses_indices_that_are_none() -> None:
    op = MaxPool2d(kernel_shape=(1, 1))
    x = np.ones((2, 1, 1, 1))

    for wrong in (2, -2, 1):  # the last one lies in another image
        with pytest.raises(OperatorError, match=f"indices has the entry {wrong}, which lies outside"):
            op.run_backward([x, None], [x], [x, np.array([wrong, 1]).reshape(x.shape)])


def test_cross_entropy_of_extreme_scores() -> None:
    op = SoftmaxCrossEntropy(reduction="none")
    scores = np.array([[1000.0, 0.0], [-1000.0, 0.0], [INF, 0.0], [NAN, 0.0], [-INF, -INF], [-INF, 0.0]])
    loss, log_prob = op(scores, np.array([0, 0, 0, 0, 0, 1]), None)

    np.testing.assert_array_equal(loss, [0.0, 1000.0, NAN, NAN, NAN, 0.0])
    np.testing.assert_array_equal(log_prob[:2], [[0.0, -1000.0], [-1000.0, 0.0]])
    np.testing.assert_array_equal(np.isnan(log_prob), [[False] * 2] * 2 + [[True] * 2] * 3 + [[False] * 2])


@pytest.mark.parametrize("pixels", [1, 3])
def test_small_losses_keep_their_digits(pixels: int) -> None:
    scores = np.zeros((1, 2, pixels), np.float32)
    scores[0, 0] = 30.0
    op = SoftmaxCrossEntropy(reduction="sum")
    labels = np.zeros((1, pixels), np.int64)
    loss, log_prob = op(scores, labels, None)
    gradient = op.run_backward([np.ones((), np.float32), None], [scores, labels, None], [loss, log_prob])[0]

    tiny = math.log1p(math.exp(-30.0))
    assert float(loss) == pytest.approx(pixels * tiny, rel=1e-6)
    np.testing.assert_allclose(gradient[0, 0], math.expm1(-tiny), rtol=1e-6)
    np.testing.assert_allclose(gradient[0, 1], -math.expm1(-tiny), rtol=1e-6)


def test_nothing_counts() -> None:
    op = SoftmaxCrossEntropy(ignore_index=3)
    scores, labels = np.array([[0.0, NAN], [1.0, 2.0]]), np.array([3, 3])
    loss, log_prob = op(scores, labels, None)
    gradient = op.run_backward([np.ones(()), None], [scores, labels, None], [loss, log_prob])[0]

    assert math.isnan(loss)
    assert gradient.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_batchnorm_of_a_large_mean() -> None:
    """The difference of the mean square and the squared mean would leave nothing of the variance."""
    x = (1e4 + np.random.default_rng(0).standard_normal((64, 2, 5))).astype(np.float32)
    one, zero = np.ones(2, np.float32), np.zeros(2, np.float32)
    y, mean, variance = BatchNorm(training_mode=1, epsilon=0.0, momentum=0.0)(x, one, zero, zero, one)
    wide = x.astype(np.float64)

    np.testing.assert_allclose(mean, wide.mean((0, 2)), rtol=2**-24)
    np.testing.assert_allclose(variance, wide.var((0, 2)), rtol=2**-23)
    expected = (wide - wide.mean((0, 2))[:, None]) / wide.std((0, 2))[:, None]
    np.testing.assert_allclose(y, expected, rtol=0, atol=8 * 2**-24 * np.abs(expected).max())


@each_dtype
def test_sparse_topk_of_special_numbers(dtype: Any) -> None:
    x = np.array([0.0, -0.0, NAN, 1.0, -INF, -1.0, -NAN, 0.5, INF]).astype(dtype)
    for k in range(len(x) + 1):
        case = sparse_topk(x.astype(np.float64), k)
        values, indices = case.op(x)
        expected = case.expected([x.astype(np.float64)], [np.zeros(k)])[0]
        np.testing.assert_array_equal(indices, expected[1])
        np.testing.assert_array_equal(values.astype(np.float64), x[indices].astype(np.float64))
    assert SparseTopK(k=2)(x)[1].tolist() == [2, 6]  # NaN comes before infinity
    assert SparseTopK(k=8)(x)[1].tolist() == [0, 2, 3, 4, 5, 6, 7, 8]  # 0 and -0 are equal, the first is taken


@each_dtype
def test_sparse_topk_of_many(dtype: Any) -> None:
    stream = np.random.default_rng(3)
    x = (stream.standard_normal(100_000) * np.exp2(stream.integers(-12, 12, 100_000))).astype(dtype)
    for k in (1, 1000, 60_000):
        values, indices = SparseTopK(k=k)(x)
        expected = np.sort(np.argsort(-np.abs(x.astype(np.float64)), kind="stable")[:k])
        np.testing.assert_array_equal(indices, expected)
        np.testing.assert_array_equal(values, x[expected])


def test_sparse_topk_refuses_indices_that_are_none() -> None:
    op, values = SparseTopK(k=1), np.ones(1)

    with pytest.raises(OperatorError, match="indices has the entry 3 for a tensor of 3 elements"):
        op.run_backward([values, None], [np.ones(3)], [values, np.array([3])])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adam_step_is_the_published_formula_bit_for_bit(dtype: Any) -> None:
    """The optimizer, which corrects its rate instead of the moments, is as near as the rounding of a few operations."""
    stream, shape = np.random.default_rng(2), (33, 5)
    rate, beta1, beta2, epsilon = 0.01, 0.9, 0.99, 1e-7
    settings = {"learning_rate": rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    optimizer, op = AdamOptimizer(LinearExecutor(), "loss", **settings), AdamStep(**settings)
    parameter = trained = stream.standard_normal(shape).astype(dtype)
    m, v = np.zeros(shape, dtype), np.zeros(shape, dtype)
    for step in range(1, 21):
        gradient = (stream.standard_normal(shape) * 10.0 ** stream.integers(-6, 3)).astype(dtype)
        first = beta1 * m + (1.0 - beta1) * gradient
        second = beta2 * v + (1.0 - beta2) * (gradient * gradient)
        change = rate * (first / (1.0 - beta1**step)) / ((second / (1.0 - beta2**step)) ** 0.5 + epsilon)
        expected = parameter - change
        trained = optimizer.update_rule(gradient, trained, "w")
        parameter, m, v = op(parameter, gradient, m, v, np.array(step))

        np.testing.assert_array_equal(parameter, expected)
        np.testing.assert_array_equal(m, first)
        np.testing.assert_array_equal(v, second)
        # Each step rounds the parameter, of at most 4, and a change of at most 0.1 in some ten operations.
        np.testing.assert_allclose(trained, parameter, rtol=0.0, atol=step * 5 * np.finfo(dtype).eps)
