from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.events.early_stopping import EarlyStoppingEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.statistics import Outcome
from deep500.training.training_event import RunnerEvent
from tests.unit.training.support import make_trainer


def slow(executor: Any) -> GradientDescent:
    return GradientDescent(executor, learning_rate=0.0)


def scripted(values: list[float]) -> Any:
    """Return a metric that gives these values, one an epoch."""
    return lambda stats: values[len(stats.epochs) - 1]


def stopped_after(values: list[float], **arguments: Any) -> tuple[int, EarlyStoppingEvent]:
    event = EarlyStoppingEvent(scripted(values), mode="min", **arguments)
    stats = make_trainer(slow).run_loop(len(values), [event])
    return stats.epochs_done if event.stopped else 0, event


def test_it_stops_when_nothing_gets_better() -> None:
    trainer = make_trainer(slow)
    event = EarlyStoppingEvent(patience=2)
    stats = trainer.run_loop(20, [event])

    assert stats.outcome is Outcome.STOPPED
    assert len(stats.epochs) == 4  # the first is the best; two may be no better, the third stops
    assert event.best_step == 4


def test_a_training_that_gets_better_goes_on() -> None:
    event = EarlyStoppingEvent(patience=1)
    stats = make_trainer(GradientDescent).run_loop(5, [event])

    assert stats.outcome is Outcome.COMPLETED
    assert event.waited == 0


@pytest.mark.parametrize(
    ("values", "arguments", "epochs"),
    [
        ([3, 2, 1, 1, 1, 1], {"patience": 1}, 5),
        ([3, 2, 2.5, 1, 1.5, 1.5], {"patience": 1}, 6),
        ([3, 2.95, 2.9, 2.91], {"patience": 2, "minimum_change": 0.1}, 4),
        ([3, 2.85, 2.7, 2.55], {"patience": 1, "minimum_change": 0.1}, 0),
        ([float("nan"), 3, float("nan"), float("nan")], {"patience": 1}, 4),
    ],
)
def test_patience_and_least_change(values: list[float], arguments: dict[str, Any], epochs: int) -> None:
    # A stop in after_epoch comes when the epoch is done.
    assert stopped_after(values, **arguments)[0] == epochs


def test_more_is_better_where_it_is() -> None:
    event = EarlyStoppingEvent("test_accuracy", patience=1)
    make_trainer(GradientDescent).run_loop(3, [event])

    assert event.best == 100.0


def test_it_stops_between_two_steps() -> None:
    event = EarlyStoppingEvent(patience=1)
    stats = make_trainer(slow).run_loop(3, [event], evaluate_every_steps=1)

    assert stats.outcome is Outcome.STOPPED
    assert stats.steps == 3


class AtTests(RunnerEvent):
    """Keeps the parameters at each test."""

    def __init__(self) -> None:
        self.parameters: list[list[Any]] = []

    def after_test_set(self, runner: Any, training_stats: Any) -> None:
        network = runner.executor.network
        self.parameters.append(network.fetch_tensors(network.get_params()))


def test_the_best_parameters_are_put_back() -> None:
    trainer = make_trainer(lambda e: GradientDescent(e, learning_rate=300.0))  # gets worse and worse
    event, tests = EarlyStoppingEvent("test_loss", patience=2, restore_best=True), AtTests()
    stats = trainer.run_loop(20, [event, tests])

    losses = [evaluation.result.loss for evaluation in stats.all_evaluations]
    assert event.best == min(losses)
    network = trainer.executor.network
    best = tests.parameters[int(np.argmin(losses))]
    for found, expected in zip(network.fetch_tensors(network.get_params()), best):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "test_los"}, "Did you mean 'test_loss'"),
        ({"metric": 3}, "A metric was given as 3"),
        ({"metric": lambda stats: 1.0}, "mode was given as None"),
        ({"mode": "maximal"}, "mode was given as 'maximal'"),
        ({"patience": 0}, "patience was given as 0"),
        ({"minimum_change": -1}, "minimum_change was given as -1"),
        ({"restore_best": 1}, "restore_best was given as 1"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        EarlyStoppingEvent(**arguments)


def test_a_metric_that_there_will_not_be_is_told_before_the_training() -> None:
    trainer = make_trainer(GradientDescent, tested=False)
    with pytest.raises(TrainingError, match="no validation sampler"):
        trainer.run_loop(1, [EarlyStoppingEvent()])
    assert trainer.statistics is not None
    assert trainer.statistics.steps == 0
    assert trainer.run_loop(1, [EarlyStoppingEvent("training_loss")]).complete
