from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import TrainingError
from deep500.training.events.target_accuracy import TargetAccuracyEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.statistics import Outcome
from deep500.training.training_event import RunnerEvent
from tests.unit.training.support import make_trainer


def learning(executor: Any) -> GradientDescent:
    return GradientDescent(executor, learning_rate=0.05)


class SlowTests(RunnerEvent):
    """Makes each step take 1 s and each test 100 s of a clock of its own."""

    def __init__(self) -> None:
        self.now_ns = 10**9

    def before_step(self, step: int, runner: Any, training_stats: Any, inputs: Any) -> None:
        self.now_ns += 10**9

    def before_test_batch(self, runner: Any, training_stats: Any, inputs: Any) -> None:
        self.now_ns += 50 * 10**9


def test_time_to_the_target_is_without_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SlowTests()
    for name in ("deep500.measure.clock.now_ns", "deep500.training.pass_meter.now_ns"):
        monkeypatch.setattr(name, lambda: clock.now_ns)
    event = TargetAccuracyEvent(100.0)
    stats = make_trainer(learning).run_loop(20, [clock, event], evaluate_every_steps=1, test_before=True)

    assert event.reached
    assert event.value == 100.0
    assert stats.outcome is Outcome.STOPPED
    assert event.training_s == pytest.approx(event.step)
    assert event.samples == stats.samples
    assert event.step == stats.steps
    accuracies = [one.result.accuracy_percent for one in stats.all_evaluations]
    assert accuracies[-1] == 100.0
    assert all(accuracy != 100.0 for accuracy in accuracies[1:-1])


def test_it_notes_without_a_stop() -> None:
    event = TargetAccuracyEvent(50.0, stop=False)
    stats = make_trainer(learning).run_loop(4, [event])

    assert stats.outcome is Outcome.COMPLETED
    assert event.epoch == 0
    assert event.samples == 28  # the last minibatch of 2 is dropped


def test_at_the_end_of_an_epoch_the_epoch_is_whole() -> None:
    event = TargetAccuracyEvent(50.0)
    stats = make_trainer(learning).run_loop(4, [event])

    assert stats.outcome is Outcome.STOPPED
    assert len(stats.epochs) == stats.epochs_done == 1
    assert stats.epochs[0].test is not None


def test_a_target_that_is_not_reached() -> None:
    event = TargetAccuracyEvent(100.1)
    assert make_trainer(learning).run_loop(1, [event]).outcome is Outcome.COMPLETED
    assert (event.reached, event.training_s, event.step, event.samples, event.epoch) == (False, None, None, None, None)


def test_a_loss_is_a_target_too() -> None:
    event = TargetAccuracyEvent(0.9, "test_loss")
    make_trainer(learning).run_loop(20, [event])

    assert event.reached
    assert event.value is not None
    assert event.value <= 0.9


@pytest.mark.parametrize("arguments", [("high",), (90, "training_accuracy"), (90, lambda stats: 1.0, "max"), (9, "a")])
def test_arguments_are_checked(arguments: Any) -> None:
    with pytest.raises(TrainingError, match=r"[Aa]ccepted are"):
        TargetAccuracyEvent(*arguments)
