from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import TrainingError
from deep500.training.events.schedule import ScheduleEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.schedules import CosineSchedule, StepListSchedule
from deep500.training.training_event import RunnerEvent, StopTraining
from tests.unit.training.support import make_trainer


class Rates(RunnerEvent):
    """Notes the learning rate that each step is taken with, and may stop."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.rates: list[float] = []
        self.stop_after = stop_after
        self.snapshot: Any = None

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        self.rates.append(runner.optimizer.learning_rate)
        if step + 1 == self.stop_after:
            self.snapshot = runner.state()
            raise StopTraining


def rates(schedule: Any, per: str = "step", **budget: Any) -> list[float]:
    found = Rates()
    make_trainer(lambda e: GradientDescent(e, learning_rate=0.1)).run_loop(
        **(budget or {"epochs": 2}), events=[ScheduleEvent("learning_rate", schedule, per), found]
    )
    return found.rates


def test_each_step_has_the_schedules_value() -> None:
    assert rates("cosine") == pytest.approx([CosineSchedule(initial=0.1, total=8)(step) for step in range(8)])


def test_each_epoch_has_the_schedules_value() -> None:
    assert rates(StepListSchedule([1]), "epoch") == pytest.approx([0.1] * 4 + [0.01] * 4)


def test_any_function_gives_values() -> None:
    assert rates(lambda step: 1.0 / (step + 1)) == [1.0 / (step + 1) for step in range(8)]


@pytest.mark.parametrize("budget", [{"steps": 6}, {"samples": 38}])
def test_the_length_follows_from_the_budget(budget: dict[str, int]) -> None:
    assert rates("polynomial", **budget) == pytest.approx([0.1 * (1 - step / 6) for step in range(6)])


def test_the_optimizer_has_its_own_value_after_the_training() -> None:
    trainer = make_trainer(lambda e: GradientDescent(e, learning_rate=0.1))
    event = ScheduleEvent("learning_rate", "cosine")
    trainer.run_loop(1, [event])

    assert trainer.optimizer.learning_rate == 0.1  # type: ignore[attr-defined]
    found = Rates()
    trainer.run_loop(1, [event, found])
    assert found.rates[0] == 0.1


@pytest.mark.parametrize("per", ["step", "epoch"])
@pytest.mark.parametrize("stop_after", [1, 3, 6])
def test_it_goes_on_where_it_was(per: str, stop_after: int) -> None:
    first, second = Rates(stop_after), Rates()
    make = lambda e: GradientDescent(e, learning_rate=0.1)  # noqa: E731
    make_trainer(make).run_loop(2, [ScheduleEvent("learning_rate", "cosine", per), first])
    trainer = make_trainer(make)
    trainer.restore(first.snapshot)
    trainer.run_loop(2, [ScheduleEvent("learning_rate", "cosine", per), second])

    assert first.rates + second.rates == rates("cosine", per)
    assert trainer.optimizer.learning_rate == 0.1  # type: ignore[attr-defined]


def test_another_hyperparameter_is_scheduled() -> None:
    class Decays(RunnerEvent):
        found: list[float] = []  # noqa: RUF012

        def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
            self.found.append(runner.optimizer.weight_decay)

    trainer = make_trainer(lambda e: GradientDescent(e, learning_rate=0.1))
    trainer.run_loop(1, [ScheduleEvent("weight_decay", lambda step: 0.001 * step), Decays()])

    assert Decays.found == pytest.approx([0.0, 0.001, 0.002, 0.003])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learning_rat", "cosine"), "no hyperparameter 'learning_rat' to schedule. Did you mean 'learning_rate'"),
        (("clip_norm", "cosine"), "made with clip_norm=None, from which a schedule cannot start"),
    ],
)
def test_what_cannot_be_scheduled_is_told_before_the_training(arguments: Any, message: str) -> None:
    found = Rates()
    with pytest.raises(TrainingError, match=message):
        make_trainer(GradientDescent).run_loop(1, [ScheduleEvent(*arguments), found])
    assert not found.rates


def test_a_schedule_with_a_value_of_its_own_starts_from_none() -> None:
    stats = make_trainer(GradientDescent).run_loop(1, [ScheduleEvent("clip_norm", CosineSchedule(initial=2.0))])

    assert stats.complete


def test_a_budget_of_seconds_has_no_length() -> None:
    with pytest.raises(TrainingError, match="needs to know how long"):
        rates("cosine", time_limit_s=1.0)


def test_a_value_that_is_not_finite_is_refused() -> None:
    with pytest.raises(TrainingError, match="The schedule's learning_rate of step 0 was given as nan"):
        rates(lambda step: float("nan"))


@pytest.mark.parametrize("arguments", [(7, "cosine"), ("learning_rate", "cosine", "batch"), ("learning_rate", 3)])
def test_arguments_are_checked(arguments: Any) -> None:
    with pytest.raises(TrainingError, match="accepted are"):
        ScheduleEvent(*arguments)
