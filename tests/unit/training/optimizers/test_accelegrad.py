from __future__ import annotations

import numpy as np
import pytest

from deep500.training.optimizers.accelegrad import AcceleGradOptimizer
from tests.unit.training.support import LinearExecutor, batch_of, clusters


def test_weights_are_those_of_the_paper() -> None:
    optimizer = AcceleGradOptimizer(LinearExecutor())
    weights = []
    for _ in range(6):
        optimizer.new_input()
        weights.append(optimizer.weight)

    assert weights == [1, 1, 1, 1, 1.25, 1.5]


def test_three_steps_from_outside_are_a_step() -> None:
    executor, other = LinearExecutor(), LinearExecutor()
    optimizer, by_hand = AcceleGradOptimizer(executor), AcceleGradOptimizer(other)
    for _ in range(8):
        optimizer.step(batch_of(clusters()))
        by_hand.new_input()
        for name in other.network.get_params():
            by_hand.prepare_param(name)
        other.inference_and_backprop(batch_of(clusters()))
        for name, gradient in other.network.gradient():
            found, value = other.network.fetch_tensors([gradient, name])
            other.network.feed_tensor(name, by_hand.update_rule(found, value, name))

    np.testing.assert_array_equal(executor.fetch(executor.weight), other.fetch(other.weight))


def test_it_converges_faster_than_the_square_root_of_time() -> None:
    """Theorem 2.1: the mean, weighted by alpha, of y on a smooth convex function falls as 1 / T^2."""
    optimizer = AcceleGradOptimizer(LinearExecutor(), diameter=4.0)
    curvature = np.array([1.0, 0.01])
    y = z = np.array([2.0, -2.0])
    mean, total, losses = np.zeros(2), 0.0, {}
    for t in range(1, 801):
        optimizer.new_input()
        share = 1.0 / optimizer.weight
        z = optimizer._z.get("w", y)
        x = share * z + (1.0 - share) * y
        y = optimizer.update_rule(curvature * x, x, "w")
        mean, total = mean + optimizer.weight * y, total + optimizer.weight
        losses[t] = 0.5 * float(curvature @ (mean / total) ** 2)

    assert losses[800] < losses[200] / 8


def test_it_trains() -> None:
    optimizer = AcceleGradOptimizer(LinearExecutor())

    losses = [float(optimizer.step(batch_of(clusters()))["loss"]) for _ in range(30)]

    assert losses[-1] < 0.1 * losses[0]
    assert optimizer.step_count == 30


def test_groups_have_diameters_of_their_own() -> None:
    executor = LinearExecutor()
    before = executor.fetch(executor.bias)
    optimizer = AcceleGradOptimizer(executor, parameter_groups=[(executor.bias, {"learning_rate": 0.0})])
    for _ in range(5):
        optimizer.step(batch_of(clusters()))

    np.testing.assert_allclose(executor.fetch(executor.bias), before)
    assert optimizer.learning_rate == pytest.approx(1.0)
