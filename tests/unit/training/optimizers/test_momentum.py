from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.optimizers.momentum import MomentumOptimizer
from tests.unit.training.support import LinearExecutor, batch_of, clusters, follow


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_steps_are_those_of_the_formula(momentum: float) -> None:
    random = np.random.default_rng(0)
    gradients = random.normal(size=(20, 3, 2))
    start = random.normal(size=(3, 2))
    # Solved: each gradient acts with a geometric series of weights on all later steps.
    expected = []
    for step in range(20):
        velocities = [sum(momentum ** (t - i) * gradients[i] for i in range(t + 1)) for t in range(step + 1)]
        expected.append(start - 0.05 * sum(velocities))

    values = follow(MomentumOptimizer(LinearExecutor(), "loss", 0.05, momentum), gradients, start)

    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_parameters_have_velocities_of_their_own_that_are_copies() -> None:
    optimizer = MomentumOptimizer(LinearExecutor(), "loss", 1.0, 0.5)
    gradient = np.ones(2)
    optimizer.update_rule(gradient, np.zeros(2), "a")
    gradient[:] = 100.0

    np.testing.assert_array_equal(optimizer.update_rule(np.ones(2), np.zeros(2), "a"), [-1.5, -1.5])
    np.testing.assert_array_equal(optimizer.update_rule(np.ones(2), np.zeros(2), "b"), [-1.0, -1.0])


def test_it_trains_with_an_executor_that_uses_gradient_memory_again() -> None:
    executor = LinearExecutor()
    optimizer = MomentumOptimizer(executor, "loss", 0.1, 0.9)

    losses = [float(optimizer.step(batch_of(clusters()))["loss"]) for _ in range(20)]

    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("momentum", [-0.1, 1.0, float("nan"), None])
def test_momenta_that_are_not_accepted(momentum: float) -> None:
    with pytest.raises(TrainingError, match="momentum"):
        MomentumOptimizer(LinearExecutor(), "loss", 0.1, momentum)


def test_nesterov_looks_ahead() -> None:
    optimizer = MomentumOptimizer(LinearExecutor(), "loss", 1.0, 0.5, nesterov=True)

    values = follow(optimizer, [np.ones(2)] * 2, np.zeros(2))

    np.testing.assert_allclose(values, [[-1.5, -1.5], [-1.5 - 1 - 0.75, -3.25]])
    with pytest.raises(TrainingError, match="nesterov was given as 1"):
        MomentumOptimizer(LinearExecutor(), nesterov=1)  # type: ignore[arg-type]
