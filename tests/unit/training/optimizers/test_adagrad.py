from __future__ import annotations

import numpy as np

from deep500.training.optimizers.adagrad import AdaGradOptimizer
from tests.unit.training.support import LinearExecutor, batch_of, clusters, follow


def test_defaults() -> None:
    optimizer = AdaGradOptimizer(LinearExecutor())

    assert (optimizer.learning_rate, optimizer.epsilon, optimizer.initial_accumulator) == (0.01, 1e-10, 0.0)


def test_steps_of_a_constant_gradient_shrink_with_the_root_of_time() -> None:
    values = follow(AdaGradOptimizer(LinearExecutor(), "loss", 1.0), [np.array([2.0, -3.0])] * 4, np.zeros(2))

    steps = np.diff([np.zeros(2), *values], axis=0)
    np.testing.assert_allclose(steps, np.outer(1 / np.sqrt([1, 2, 3, 4]), [-1, 1]), rtol=1e-9)


def test_initial_sum_counts_once() -> None:
    optimizer = AdaGradOptimizer(LinearExecutor(), "loss", 1.0, initial_accumulator=3.0)

    values = follow(optimizer, [np.ones(1), np.ones(1)], np.zeros(1))

    np.testing.assert_allclose(values, [[-1 / 2], [-1 / 2 - 1 / np.sqrt(5)]], rtol=1e-9)


def test_it_returns_a_value_and_trains() -> None:
    """The published package's rule returned nothing."""
    optimizer = AdaGradOptimizer(LinearExecutor(), "loss", 0.5)

    losses = [float(optimizer.step(batch_of(clusters()))["loss"]) for _ in range(20)]

    assert losses[-1] < 0.1 * losses[0]
