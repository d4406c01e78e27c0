from __future__ import annotations

import numpy as np

from deep500.training.optimizers.lion import LionOptimizer
from tests.unit.training.support import LinearExecutor, follow


def test_all_steps_have_one_size() -> None:
    gradients = np.random.default_rng(0).normal(size=(9, 4)) * [1e-6, 1.0, 1e6, 0.0]
    values = follow(LionOptimizer(LinearExecutor(), "loss", 0.5), list(gradients), np.zeros(4))

    np.testing.assert_array_equal(np.abs(np.diff([np.zeros(4), *values], axis=0)), [[0.5, 0.5, 0.5, 0.0]] * 9)


def test_defaults_are_those_of_the_paper() -> None:
    optimizer = LionOptimizer(LinearExecutor())

    assert (optimizer.learning_rate, optimizer.beta1, optimizer.beta2, optimizer.weight_decay) == (1e-4, 0.9, 0.99, 0.0)
