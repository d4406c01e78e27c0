from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.training.support import LinearExecutor, batch_of, clusters, follow


def test_steps_are_those_of_the_formula() -> None:
    random = np.random.default_rng(0)
    gradients = random.normal(size=(8, 3, 2))
    start = random.normal(size=(3, 2))

    values = follow(GradientDescent(LinearExecutor(), "loss", 0.3), gradients, start)

    np.testing.assert_allclose(values, start - 0.3 * np.cumsum(gradients, axis=0), rtol=0, atol=1e-12)


def test_step_of_the_executor() -> None:
    executor = LinearExecutor()
    optimizer = GradientDescent(executor, learning_rate=0.2)
    before = executor.network.fetch_tensors([executor.weight])[0]
    data = clusters(9)
    scores = data.data @ before.T + executor.fetch(executor.bias)
    softmax = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    gradient = (softmax - np.eye(3)[data.labels]).T @ data.data / 9

    outputs = optimizer.step(batch_of(data))

    np.testing.assert_allclose(executor.fetch(executor.weight), before - 0.2 * gradient, rtol=0, atol=1e-12)
    assert set(outputs) == {"output", "loss"}
    assert executor.network.mode == "train"


def test_modifier_and_changed_rate() -> None:
    optimizer = GradientDescent(
        LinearExecutor(), learning_rate=0.1, gradient_modifier=lambda gradient, parameter: gradient + 0.5 * parameter
    )

    assert optimizer._rule(1.0, 2.0, "w") == 2.0 - 0.1 * 2.0
    optimizer.learning_rate = np.float64(0.5)
    moved = optimizer.update_rule(np.ones(2, np.float32), np.ones(2, np.float32), "w")
    assert moved.dtype == np.float32


@pytest.mark.parametrize("rate", [-0.1, float("nan"), float("inf"), "0.1", None, True, [0.1]])
def test_rates_that_are_not_accepted(rate: float) -> None:
    with pytest.raises(TrainingError, match="learning_rate"):
        GradientDescent(LinearExecutor(), "loss", rate)
