from __future__ import annotations

import numpy as np

from deep500.training.optimizers.lamb import LAMBOptimizer
from tests.unit.training.support import LinearExecutor


def test_step_has_the_length_of_the_weights() -> None:
    weight = np.random.default_rng(0).normal(size=(3, 5))
    for scale in (1e-2, 1e2):
        optimizer = LAMBOptimizer(LinearExecutor(), "loss", 0.25)
        step = weight - optimizer.update_rule(scale * np.sin(weight), weight, "w")
        np.testing.assert_allclose(np.linalg.norm(step), 0.25 * np.linalg.norm(weight))


def test_zeros_can_be_left() -> None:
    moved = LAMBOptimizer(LinearExecutor(), "loss", 0.1).update_rule(np.ones(2), np.zeros(2), "bias")

    np.testing.assert_allclose(moved, [-0.1, -0.1], rtol=1e-5)


def test_nothing_is_divided_by_0() -> None:
    optimizer = LAMBOptimizer(LinearExecutor(), "loss", 0.1)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(optimizer.update_rule(np.zeros(2), np.zeros(2), "w"), [0.0, 0.0])


def test_decay_is_part_of_the_rule() -> None:
    optimizer = LAMBOptimizer(LinearExecutor())

    assert (optimizer.weight_decay, optimizer.epsilon) == (0.01, 1e-6)
    assert optimizer.step_scalars(0, 1).kept == 1.0
