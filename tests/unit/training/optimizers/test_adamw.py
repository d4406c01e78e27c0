from __future__ import annotations

import inspect

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.adamw import AdamWOptimizer
from tests.unit.training.support import LinearExecutor, follow


def test_it_is_adam_after_a_decay() -> None:
    gradients = np.random.default_rng(0).normal(size=(5, 3))
    optimizer, adam = AdamWOptimizer(LinearExecutor(), "loss", 0.1), AdamOptimizer(LinearExecutor(), "loss", 0.1)
    value = expected = np.ones(3)
    for gradient in gradients:
        value = optimizer.update_rule(gradient, value, "w")
        expected = adam.update_rule(gradient, expected - 0.1 * 0.01 * expected, "w")

    np.testing.assert_allclose(value, expected, rtol=1e-14)
    assert optimizer.weight_decay == 0.01


def test_without_decay_it_is_adam() -> None:
    gradients = list(np.random.default_rng(0).normal(size=(5, 3)))
    optimizer = AdamWOptimizer(LinearExecutor(), weight_decay=0.0)

    np.testing.assert_array_equal(
        follow(optimizer, gradients, np.ones(3)), follow(AdamOptimizer(LinearExecutor()), gradients, np.ones(3))
    )


def test_signature_is_adams() -> None:
    assert list(inspect.signature(AdamWOptimizer).parameters) == list(inspect.signature(AdamOptimizer).parameters)
    with pytest.raises(TrainingError, match="weight_decay was given as -1"):
        AdamWOptimizer(LinearExecutor(), weight_decay=-1)
