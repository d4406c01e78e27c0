from __future__ import annotations

import logging

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.optimizers.lbfgs import LBFGSOptimizer
from tests.unit.training.support import LinearExecutor, batch_of, clusters


def test_iterations_are_steps() -> None:
    executors = LinearExecutor(), LinearExecutor()
    many, one = LBFGSOptimizer(executors[0], iterations=4), LBFGSOptimizer(executors[1])
    for _ in range(3):
        many.step(batch_of(clusters()))
    for _ in range(12):
        one.step(batch_of(clusters()))

    np.testing.assert_array_equal(*(executor.fetch(executor.weight) for executor in executors))
    assert (many.step_count, one.step_count) == (3, 12)


def test_it_needs_few_evaluations() -> None:
    optimizer = LBFGSOptimizer(LinearExecutor())
    losses = [float(optimizer.step(batch_of(clusters()))["loss"]) for _ in range(15)]

    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1e-3 * losses[0]
    assert optimizer.evaluations < 40


def test_history_is_bounded() -> None:
    optimizer = LBFGSOptimizer(LinearExecutor(), history_size=3)
    for _ in range(8):
        optimizer.step(batch_of(clusters()))

    assert len(optimizer._steps) == len(optimizer._changes) == 3


def test_a_direction_that_leads_nowhere_is_said_and_changes_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = LinearExecutor()
    optimizer = LBFGSOptimizer(executor)
    optimizer.step(batch_of(clusters()))
    before = executor.fetch(executor.weight)
    monkeypatch.setattr("scipy.optimize.line_search", lambda *a, **k: (None,) * 6)
    with caplog.at_level(logging.WARNING):
        optimizer.step(batch_of(clusters()))

    assert "no step that makes the loss 'loss' smaller" in caplog.text
    np.testing.assert_array_equal(executor.fetch(executor.weight), before)
    assert not optimizer._steps  # what may be of another function is forgotten


@pytest.mark.parametrize("option", ["gradient_modifier", "weight_decay", "clip_norm", "ema_decay"])
def test_options_are_refused(option: str) -> None:
    with pytest.raises(TrainingError, match=f"was given {option}; accepted are none"):
        LBFGSOptimizer(LinearExecutor(), **{option: 0.5})
    assert LBFGSOptimizer(LinearExecutor()).hyperparameter_names == ("learning_rate",)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1)])
def test_wolfe_conditions_must_be_possible(shares: tuple[float, float]) -> None:
    with pytest.raises(TrainingError, match="accepted are 0 < decrease < curvature < 1"):
        LBFGSOptimizer(LinearExecutor(), decrease=shares[0], curvature=shares[1])
