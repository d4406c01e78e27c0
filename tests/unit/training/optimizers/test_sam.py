from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, TrainingError
from deep500.training.optimizers.accelegrad import AcceleGradOptimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.optimizers.lbfgs import LBFGSOptimizer
from deep500.training.optimizers.sam import SAMOptimizer
from tests.unit.training.support import LinearExecutor, batch_of, clusters


class KeepingExecutor(LinearExecutor):
    """Leaves gradients as they are when parameters change, as the adapters do."""

    def update_parameters(self, rule: Any) -> None:
        kept = {name: gradient.copy() for name, gradient in self.gradients.items()}
        super().update_parameters(rule)
        self.gradients = kept


def gradients_of(executor: LinearExecutor) -> dict[str, np.ndarray]:
    executor.inference_and_backprop(batch_of(clusters()))
    return {name: gradient.copy() for name, gradient in executor.gradients.items()}


def test_step_is_the_bases_by_the_gradient_nearby() -> None:
    executor, other = KeepingExecutor(), KeepingExecutor()
    SAMOptimizer(executor, "loss", 0.3, 0.5, GradientDescent).step(batch_of(clusters()))
    other.network.train()
    start = {name: value.copy() for name, value in other.tensors.items()}
    first = gradients_of(other)
    norm = np.sqrt(sum(np.sum(g**2) for g in first.values()))
    for name, gradient in first.items():
        other.feed(name, start[name] + 0.5 * gradient / norm)
    second = gradients_of(other)

    for name, value in start.items():
        np.testing.assert_allclose(executor.fetch(name), value - 0.3 * second[name], rtol=1e-13)


def test_hyperparameters_of_the_base_are_its_own() -> None:
    optimizer = SAMOptimizer(KeepingExecutor(), base=AdamOptimizer, learning_rate=0.01, clip_norm=1.0)
    optimizer.learning_rate, optimizer.beta1, optimizer.rho = 0.5, 0.7, 0.1

    assert (optimizer.base.learning_rate, optimizer.base.beta1, optimizer.base.clip_norm) == (0.5, 0.7, 1.0)
    assert (optimizer.beta1, optimizer.clip_norm, optimizer.rho) == (0.7, 1.0, 0.1)
    assert optimizer.hyperparameter_names[:3] == ("rho", "learning_rate", "beta1")
    with pytest.raises(AttributeError, match="no attribute 'gamma'"):
        optimizer.gamma  # noqa: B018 - reading is what fails


def test_options_are_the_bases() -> None:
    optimizer = SAMOptimizer(KeepingExecutor(), base=GradientDescent, accumulation_steps=2, ema_decay=0.5)
    name = optimizer.network.get_params()[0]
    before = optimizer.executor.fetch(name)
    optimizer.step(batch_of(clusters()))
    np.testing.assert_array_equal(optimizer.executor.fetch(name), before)
    assert optimizer.step_count == 0
    optimizer.step(batch_of(clusters()))
    assert optimizer.step_count == 1
    after = optimizer.executor.fetch(name)
    with optimizer.averaged():
        np.testing.assert_allclose(optimizer.executor.fetch(name), (before + after) / 2)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (3, "base was given as 3"),
        (lambda *a, **k: None, "base made None"),
        (SAMOptimizer, "a step of its own"),
        (LBFGSOptimizer, "a step of its own"),
    ],
)
def test_bases_that_are_not_accepted(base: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        SAMOptimizer(LinearExecutor(), base=base)


def test_a_base_of_three_steps_is_prepared() -> None:
    optimizer = SAMOptimizer(KeepingExecutor(), "loss", 1.0, base=AcceleGradOptimizer)
    losses = [float(optimizer.step(batch_of(clusters()))["loss"]) for _ in range(30)]

    assert losses[-1] < 0.1 * losses[0]


def test_a_flat_loss_moves_nothing() -> None:
    executor = KeepingExecutor()
    optimizer = SAMOptimizer(executor, base=GradientDescent)
    executor._run_and_differentiate = lambda program, inputs, loss: (  # type: ignore[method-assign]
        executor.gradients.update({name: np.zeros_like(value) for name, value in executor.tensors.items()})
        or executor._run(program, inputs)
    )
    before = {name: value.copy() for name, value in executor.tensors.items()}
    optimizer.step(batch_of(clusters()))

    for name, value in before.items():
        np.testing.assert_array_equal(executor.fetch(name), value)


def test_another_optimizers_snapshot_is_refused() -> None:
    optimizer = SAMOptimizer(LinearExecutor())
    with pytest.raises(CheckpointError, match="of the optimizer 'AdamOptimizer'"):
        optimizer.restore(AdamOptimizer(LinearExecutor()).state())
