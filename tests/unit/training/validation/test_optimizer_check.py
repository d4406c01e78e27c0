from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.measure.metrics.l2_error import L2Error
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.training_event import OptimizerEvent
from deep500.training.validation.optimizer_check import test_optimizer as check_optimizer
from tests.unit.training.support import LinearExecutor, clusters


def momentum(rate: float, mass: float, wrong_from: int = 0):
    velocities: dict[str, np.ndarray] = {}
    steps: dict[str, int] = {}

    def rule(gradient: np.ndarray, parameter: np.ndarray, name: str) -> np.ndarray:
        steps[name] = steps.get(name, 0) + 1
        velocities[name] = mass * velocities.get(name, 0.0) + gradient
        wrong = 1.001 if wrong_from and steps[name] >= wrong_from and parameter.ndim == 2 else 1.0
        return parameter - rate * wrong * velocities[name]

    return rule


def test_formula_in_numpy() -> None:
    optimizer = MomentumOptimizer(LinearExecutor(), "loss", 0.1, 0.9)

    report = check_optimizer(optimizer, ShuffleSampler(clusters(), 7), momentum(0.1, 0.9), [L2Error()], steps=20)

    assert report.passed
    assert len(report.losses) == 20
    assert report.metrics[0].value < 1e-12
    assert all(check.relative < 1e-12 for check in report.parameters)
    assert "20 steps, against rule: PASSED" in str(report)


def test_wrong_formula_is_found_at_its_step_and_tensor() -> None:
    optimizer = MomentumOptimizer(LinearExecutor(), "loss", 0.1, 0.9)

    report = check_optimizer(optimizer, clusters(), momentum(0.1, 0.9, 4), steps=6, raise_on_failure=False)

    assert report.first_wrong_step == 4
    wrong = [check.name for check in report.parameters if not check.agrees]
    assert [optimizer.network.parameters[name].rank for name in wrong] == [2]
    with pytest.raises(TrainingError, match="first wrong: step 4"):
        check_optimizer(optimizer, clusters(), momentum(0.1, 0.9, 4), steps=6)


def test_another_optimizer_starts_from_the_same_parameters() -> None:
    one, other = AdamOptimizer(LinearExecutor()), AdamOptimizer(LinearExecutor())
    for name, value in zip(other.network.get_params(), other.network.fetch_tensors(other.network.get_params())):
        other.network.feed_tensor(name, value + 1)
    before = other.executor.state()

    assert check_optimizer(one, clusters(), other, steps=3).passed
    after = other.executor.state()
    for name, value in before["tensors"].items() if "tensors" in before else ():
        np.testing.assert_array_equal(value, after["tensors"][name])


def test_optimizer_is_afterwards_as_it_was() -> None:
    optimizer = AdamOptimizer(LinearExecutor())
    names = optimizer.network.get_params()
    before = optimizer.network.fetch_tensors(names)
    check_optimizer(optimizer, clusters(), steps=2)

    for one, other in zip(before, optimizer.network.fetch_tensors(names), strict=True):
        np.testing.assert_array_equal(one, other)
    assert optimizer.step_count == 0


def test_published_expected_params() -> None:
    optimizer = GradientDescent(LinearExecutor(), "loss", 0.1)
    batch = clusters()[:6]
    names = optimizer.network.get_params()
    values = optimizer.network.fetch_tensors(names)
    optimizer.executor.inference_and_backprop(batch)
    gradients = optimizer.network.fetch_tensors([gradient for _, gradient in optimizer.network.gradient()])
    expected = [value - 0.1 * gradient for value, gradient in zip(values, gradients, strict=True)]

    [error] = check_optimizer(optimizer, batch, expected, [L2Error()])
    assert error < 1e-14
    assert check_optimizer(optimizer, batch, expected_params=dict(zip(names, expected))).passed
    with pytest.raises(TrainingError, match="accepted are an optimizer"):
        check_optimizer(optimizer, batch, expected[:1])
    with pytest.raises(TrainingError, match="one of both"):
        check_optimizer(optimizer, batch, expected, expected_params=expected)


def test_without_a_reference_it_must_move_and_stay_finite() -> None:
    executor = LinearExecutor()
    with pytest.raises(TrainingError, match="changed no parameter"):
        check_optimizer(GradientDescent(executor, "loss", 0.0), clusters())
    with np.errstate(all="ignore"), pytest.raises(TrainingError, match=r"After step 1, .* is not finite"):
        check_optimizer(GradientDescent(executor, "loss", 1e308, gradient_modifier=lambda g: g * 1e10), clusters())


def test_events_are_told() -> None:
    class Counting(OptimizerEvent):
        told = 0

        def after_optimizer_step(self, executor, outputs, loss) -> None:
            self.told += 1

    event = Counting()
    check_optimizer(GradientDescent(LinearExecutor()), clusters(), None, (), [event], steps=3)
    assert event.told == 3


def test_what_is_no_optimizer_is_refused() -> None:
    with pytest.raises(TrainingError, match="accepted is an optimizer"):
        check_optimizer("adam", clusters())  # type: ignore[arg-type]
