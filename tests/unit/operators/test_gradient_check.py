"""The gradient check passes correct operators and finds bugs that are planted on purpose."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.gradient_check import max_gradient_error, numerical_gradient
from deep500.operators.library.add import Add
from deep500.operators.library.batch_normalization import BatchNormalization
from deep500.operators.library.conv import Conv
from deep500.operators.library.max_pool import MaxPool
from deep500.operators.library.mul import Mul
from deep500.operators.library.relu import Relu
from deep500.operators.library.softmax import Softmax
from deep500.operators.operator import Operator

RNG = np.random.default_rng(0)
TOLERANCE = 1e-7


class ConvForgetsDilation(Conv):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        crippled = copy.copy(self)
        crippled.windows = copy.copy(self.windows)
        plan = self.windows.plan
        crippled.windows.plan = lambda size, kernel: dataclasses.replace(plan(size, kernel), dilations=(1,) * len(size))
        return Conv.backward(crippled, grads, fwd_inputs, fwd_outputs)


class ConvSwapsPads(Conv):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        pads = self.windows.pads
        crippled = Conv(pads=[*pads[len(pads) // 2 :], *pads[: len(pads) // 2]])
        return crippled.backward(grads, fwd_inputs, fwd_outputs)


class BatchNormalizationForgetsMean(BatchNormalization):
    """The mean depends on X too: its term, minus the mean of the gradient, is taken back here."""

    def backward(self, grads, fwd_inputs, fwd_outputs):
        by_x, *rest = super().backward(grads, fwd_inputs, fwd_outputs)
        x, scale = fwd_inputs[:2]
        deviation = np.sqrt(x.var(axis=(0, 2)) + self.epsilon)
        term = grads[0].mean(axis=(0, 2)) * scale / deviation
        return (by_x + term[:, None], *rest)


class BatchNormalizationUnbiased(BatchNormalization):
    """The running variance with n - 1, as PyTorch has it; only its gradient is off."""

    def backward(self, grads, fwd_inputs, fwd_outputs):
        n = fwd_inputs[0].size / fwd_inputs[0].shape[1]
        scaled = [grads[0], grads[1], grads[2] * n / (n - 1)]
        return super().backward(scaled, fwd_inputs, fwd_outputs)


class MaxPoolSpreads(MaxPool):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (np.full_like(fwd_inputs[0], grads[0].sum() / fwd_inputs[0].size),)


class SoftmaxForgetsSum(Softmax):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (grads[0] * fwd_outputs[0] * (1 - fwd_outputs[0]),)


class MulForgetsGradient(Mul):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (super().backward(grads, fwd_inputs, fwd_outputs)[0], None)


class AddForgetsBroadcast(Add):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (grads[0], grads[0])


class ReluReturnsNan(Relu):
    def backward(self, grads, fwd_inputs, fwd_outputs):
        return (np.full_like(fwd_inputs[0], np.nan),)


def channels(count: int) -> list[np.ndarray]:
    return [RNG.uniform(0.5, 2.0, count) for _ in range(4)]


IMAGE = [RNG.standard_normal((2, 2, 6, 5)), RNG.standard_normal((3, 2, 2, 2)), RNG.standard_normal(3)]
SIGNAL = [RNG.standard_normal((3, 2, 4)), *channels(2)]

PLANTED = [
    (Conv, ConvForgetsDilation, {"dilations": [2, 1]}, IMAGE),
    (Conv, ConvSwapsPads, {"pads": [1, 0, 0, 0]}, IMAGE),
    (BatchNormalization, BatchNormalizationForgetsMean, {"training_mode": 1}, SIGNAL),
    (BatchNormalization, BatchNormalizationUnbiased, {"training_mode": 1}, SIGNAL),
    (MaxPool, MaxPoolSpreads, {"kernel_shape": [2, 2]}, IMAGE[:1]),
    (Softmax, SoftmaxForgetsSum, {}, [RNG.standard_normal((2, 3))]),
    (Mul, MulForgetsGradient, {}, [RNG.standard_normal((2, 3)), RNG.standard_normal(3)]),
    (Relu, ReluReturnsNan, {}, [RNG.standard_normal((2, 3))]),
]


@pytest.mark.parametrize(
    ("operator", "broken", "attributes", "inputs"), PLANTED, ids=lambda p: getattr(p, "__name__", "")
)
def test_planted_bug_is_found(operator, broken, attributes, inputs) -> None:
    skip = (3, 4) if operator is BatchNormalization else ()

    assert max_gradient_error(operator(**attributes), inputs, skip_inputs=skip) < TOLERANCE
    assert max_gradient_error(broken(**attributes), inputs, skip_inputs=skip) > 1e4 * TOLERANCE


def test_gradient_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"shape \(2, 3\) by input 1; accepted is the input's"):
        max_gradient_error(AddForgetsBroadcast(), [np.ones((2, 3)), np.ones(3)])


def test_wrong_number_of_gradients_is_refused() -> None:
    class OneTooMany(Relu):
        def backward(self, grads, fwd_inputs, fwd_outputs):
            return (grads[0], None)

    with pytest.raises(OperatorError, match="2 gradients for 1 inputs"):
        max_gradient_error(OneTooMany(), [np.ones(2)])


def test_statistics_count_unless_they_are_skipped() -> None:
    assert max_gradient_error(BatchNormalization(), SIGNAL) > 0.01
    assert max_gradient_error(BatchNormalization(), SIGNAL, skip_inputs=(3, 4)) < TOLERANCE


def test_numerical_gradient_of_a_known_function() -> None:
    class Cube(Operator):
        def forward(self, inputs):
            return (inputs[0] ** 3,)

        def backward(self, grads, fwd_inputs, fwd_outputs):
            return (3 * fwd_inputs[0] ** 2 * grads[0],)

    x, g = np.array([[1.0, -2.0, 0.0, 100.0]]), np.array([[1.0, 0.5, -1.0, 2.0]])

    np.testing.assert_allclose(numerical_gradient(Cube(), [x], [g], 0), 3 * x**2 * g, rtol=1e-8, atol=1e-9)
    assert max_gradient_error(Cube(), [x]) < TOLERANCE
    assert x.tolist() == [[1.0, -2.0, 0.0, 100.0]]


def test_float32_inputs_are_checked_in_float64() -> None:
    assert max_gradient_error(Mul(), [np.ones(3, np.float32), np.float16(2)]) < TOLERANCE


def test_numerical_gradient_needs_float64() -> None:
    with pytest.raises(OperatorError, match="is of float32; accepted is float64"):
        numerical_gradient(Relu(), [np.ones(2, np.float32)], [np.ones(2)], 0)
    with pytest.raises(OperatorError, match="absent"):
        numerical_gradient(Relu(), [None], [None], 0)
