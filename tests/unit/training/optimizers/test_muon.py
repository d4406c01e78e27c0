from __future__ import annotations

import numpy as np
import pytest

from deep500.training.optimizers.adamw import AdamWOptimizer
from deep500.training.optimizers.muon import MuonOptimizer
from tests.unit.training.support import LinearExecutor, batch_of, clusters

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (5, 2, 3, 3), (2, 3, 4)])
def test_step_is_nearly_orthogonal(shape: tuple[int, ...]) -> None:
    optimizer = MuonOptimizer(LinearExecutor(), "loss", 1.0)
    step = -optimizer.update_rule(RANDOM.normal(size=shape), np.zeros(shape), "w").reshape(shape[0], -1)
    scale = max(1.0, step.shape[0] / step.shape[1]) ** 0.5

    singular = np.linalg.svd(step / scale, compute_uv=False)
    assert 0.3 < singular.min() <= singular.max() < 1.3


@pytest.mark.parametrize("shape", [(), (3,)])
def test_other_parameters_are_given_adamw(shape: tuple[int, ...]) -> None:
    optimizer = MuonOptimizer(LinearExecutor(), "loss", 0.1, adam_ratio=0.5, weight_decay=0.2)
    adamw = AdamWOptimizer(LinearExecutor(), "loss", 0.05, 0.9, 0.95, 1e-10, weight_decay=0.2)
    value = expected = np.asarray(RANDOM.normal(size=shape))
    for _ in range(4):
        gradient = np.asarray(RANDOM.normal(size=shape))
        value = optimizer.update_rule(gradient, value, "b")
        expected = adamw.update_rule(gradient, expected, "b")

    np.testing.assert_allclose(value, expected, rtol=1e-13)


def test_a_group_may_have_adamw_for_its_matrices() -> None:
    executor, other = LinearExecutor(), LinearExecutor()
    groups = [(executor.weight, {"orthogonal": 0.0})]
    optimizer = MuonOptimizer(executor, "loss", 0.1, adam_ratio=1.0, parameter_groups=groups)
    adamw = AdamWOptimizer(other, "loss", 0.1, 0.9, 0.95, 1e-10, weight_decay=0.0)
    for _ in range(5):
        optimizer.step(batch_of(clusters()))
        adamw.step(batch_of(clusters()))

    np.testing.assert_allclose(executor.fetch(executor.weight), other.fetch(other.weight), rtol=1e-12)


def test_empty_matrices_and_zeros_stay() -> None:
    optimizer = MuonOptimizer(LinearExecutor(), "loss", 1.0)
    with np.errstate(all="raise"):
        assert optimizer.update_rule(np.zeros((0, 3)), np.zeros((0, 3)), "empty").shape == (0, 3)
        np.testing.assert_array_equal(optimizer.update_rule(np.zeros((2, 3)), np.ones((2, 3)), "w"), np.ones((2, 3)))


def test_defaults_are_those_of_the_authors() -> None:
    optimizer = MuonOptimizer(LinearExecutor())

    assert (optimizer.learning_rate, optimizer.momentum, optimizer.iterations) == (0.02, 0.95, 5)
    assert optimizer.learning_rate * optimizer.adam_ratio == pytest.approx(3e-4)
