from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.optimizers.adam import AdamOptimizer
from tests.unit.training.support import LinearExecutor, batch_of, clusters, follow

RATE, BETA1, BETA2, EPSILON = 0.01, 0.8, 0.99, 1e-6


class PublishedAdam(AdamOptimizer):
    """The fault of the published package: the second moment decays with beta1."""

    def scalars(self, step: int) -> dict[str, float]:
        return super().scalars(step) | {"beta2": self.beta1, "rest2": 1 - self.beta1}


def algorithm_1(gradients: np.ndarray, start: np.ndarray) -> list[np.ndarray]:
    """Kingma and Ba's algorithm 1, with the moments solved: m_t = (1 - b) sum_i b^(t - i) g_i, section 3."""
    values = []
    theta = start
    for t in range(1, len(gradients) + 1):
        m = (1 - BETA1) * sum(BETA1 ** (t - i) * gradients[i - 1] for i in range(1, t + 1))
        v = (1 - BETA2) * sum(BETA2 ** (t - i) * np.square(gradients[i - 1]) for i in range(1, t + 1))
        theta = theta - RATE * (m / (1 - BETA1**t)) / (np.sqrt(v / (1 - BETA2**t)) + EPSILON)
        values.append(theta)
    return values


def check_against_the_paper(kind: type[AdamOptimizer]) -> None:
    random = np.random.default_rng(0)
    gradients = random.normal(size=(30, 3, 2)) * np.geomspace(1e-3, 10, 30)[:, None, None]
    start = random.normal(size=(3, 2))

    values = follow(kind(LinearExecutor(), "loss", RATE, BETA1, BETA2, EPSILON), list(gradients), start)

    np.testing.assert_allclose(values, algorithm_1(gradients, start), rtol=0, atol=1e-12)


def test_steps_are_those_of_the_paper() -> None:
    check_against_the_paper(AdamOptimizer)


def test_planted_fault_is_caught() -> None:
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_against_the_paper(PublishedAdam)


def test_defaults_are_those_of_the_paper() -> None:
    optimizer = AdamOptimizer(LinearExecutor())

    assert (optimizer.learning_rate, optimizer.beta1, optimizer.beta2, optimizer.epsilon) == (0.001, 0.9, 0.999, 1e-8)


def test_parameters_are_counted_by_themselves() -> None:
    optimizer = AdamOptimizer(LinearExecutor(), "loss", RATE)
    follow(optimizer, [np.ones(2)] * 5, np.zeros(2))

    # The first step of a parameter is the learning rate, whatever its gradient.
    moved = optimizer.update_rule(np.array([1e-2, -5.0]), np.zeros(2), "other")
    np.testing.assert_allclose(moved, [-RATE, RATE], rtol=1e-5)


def test_float32_stays_float32() -> None:
    optimizer = AdamOptimizer(LinearExecutor())
    values = follow(optimizer, [np.ones(2, np.float32)] * 3, np.zeros(2, np.float32))

    assert all(value.dtype == np.float32 for value in values)


def test_it_trains() -> None:
    optimizer = AdamOptimizer(LinearExecutor(), "loss", 0.1)

    losses = [float(optimizer.step(batch_of(clusters()))["loss"]) for _ in range(30)]

    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("beta1", 1.0), ("beta2", -0.5), ("beta2", "0.9"), ("epsilon", 0.0), ("epsilon", float("inf")), ("beta1", None)],
)
def test_numbers_that_are_not_accepted(name: str, value: Any) -> None:
    with pytest.raises(TrainingError, match=name):
        AdamOptimizer(LinearExecutor(), **{name: value})
