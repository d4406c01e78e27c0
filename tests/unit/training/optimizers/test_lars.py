from __future__ import annotations

import numpy as np

from deep500.training.optimizers.lars import LARSOptimizer
from tests.unit.training.support import LinearExecutor


def test_step_fits_the_size_of_the_weights_not_of_the_gradient() -> None:
    weight = np.array([3.0, 4.0])
    steps = []
    for scale in (1e-3, 1.0, 1e3):
        optimizer = LARSOptimizer(LinearExecutor(), "loss", 1.0, trust=0.1, weight_decay=0.0)
        steps.append(weight - optimizer.update_rule(scale * np.array([1.0, 0.0]), weight, "w"))

    np.testing.assert_allclose(steps, [[0.5, 0.0]] * 3)


def test_zeros_can_be_left() -> None:
    optimizer = LARSOptimizer(LinearExecutor(), "loss", 0.1)

    np.testing.assert_allclose(optimizer.update_rule(np.ones(2), np.zeros(2), "bias"), [-0.1, -0.1])


def test_no_gradient_leaves_decay_alone() -> None:
    optimizer = LARSOptimizer(LinearExecutor(), "loss", 0.1, weight_decay=0.5)

    np.testing.assert_allclose(optimizer.update_rule(np.zeros(2), np.ones(2), "w"), [0.95, 0.95])


def test_decay_is_part_of_the_rule() -> None:
    optimizer = LARSOptimizer(LinearExecutor())

    assert optimizer.weight_decay == 0.0005
    assert optimizer.step_scalars(0, 1).kept == 1.0
