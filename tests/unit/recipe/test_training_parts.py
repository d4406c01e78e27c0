"""The recipe's schedules, end to end."""

from __future__ import annotations

import math
from typing import Any

import pytest

from deep500.core.errors import Deep500Error, RecipeError, TrainingError, UnknownNameError
from deep500.recipe.build import build_recipe
from deep500.recipe.recipe import Recipe
from deep500.recipe.runner import execute_recipe
from deep500.training.events.schedule import ScheduleEvent
from deep500.training.schedules import CosineSchedule
from deep500.training.training_event import RunnerEvent
from tests.unit.recipe.support import small_parts

METRICS = [("test_accuracy", None)]


class Rates(RunnerEvent):
    """Notes the learning rates; the list is shared by copies, as a run makes one."""

    rates: list[float] = []  # noqa: RUF012

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        self.rates.append(runner.optimizer.learning_rate)


def recipe(schedule: Any, **changes: Any) -> Recipe:
    fixed, mutable = small_parts(schedule={"learning_rate": schedule}, **changes)
    return Recipe(fixed, mutable, METRICS)


def rates(schedule: Any, **changes: Any) -> list[float]:
    Rates.rates.clear()
    execute_recipe(recipe(schedule, events=[Rates()], **changes))
    return list(Rates.rates)


COSINE = [0.05 * (1 + math.cos(math.pi * step / 12)) for step in range(12)]


@pytest.mark.parametrize(
    "schedule",
    ["cosine", CosineSchedule, CosineSchedule(), ("cosine", {}), {"name": "cosine"}, ("cosine", {"per": "step"})],
    ids=repr,
)
def test_a_schedule_reaches_the_optimizer(schedule: Any) -> None:
    assert rates(schedule) == pytest.approx(COSINE)


def test_arguments_and_warm_up_reach_the_schedule() -> None:
    found = rates(("cosine", {"warm_up_steps": 3, "final": 0.01}))

    assert found[:3] == pytest.approx([0.025, 0.05, 0.075])
    assert found[3:] == pytest.approx([0.01 + 0.045 * (1 + math.cos(math.pi * step / 9)) for step in range(9)])


def test_per_epoch_and_functions() -> None:
    assert rates({"name": "step_list", "milestones": [1], "per": "epoch"}) == pytest.approx([0.1] * 6 + [0.01] * 6)
    assert rates(lambda step: 0.5 / (step + 1)) == [0.5 / (step + 1) for step in range(12)]


def test_a_warm_up_before_another_by_name() -> None:
    found = rates({"name": "warm_up", "steps": 4, "first_share": 0.0, "schedule": {"name": "polynomial"}})

    assert found[:5] == pytest.approx([0.0, 0.025, 0.05, 0.075, 0.1])
    assert found[11] == pytest.approx(0.1 * (1 - 7 / 8))


def test_the_length_is_that_of_the_budget() -> None:
    assert rates("polynomial", epochs=None, steps=5) == pytest.approx([0.1 * (1 - step / 5) for step in range(5)])


@pytest.mark.parametrize(
    ("schedule", "error", "message"),
    [
        ({"learning_rte": "cosine"}, RecipeError, "unknown key 'learning_rte'. Did you mean 'learning_rate'?"),
        ({"learning_rate": "cosin"}, UnknownNameError, "no schedule named 'cosin'. Did you mean 'cosine'?"),
        ({"learning_rate": ("cosine", {"fin": 1})}, RecipeError, "unexpected keyword argument 'fin'. Did you mean"),
        ({"learning_rate": ("cosine", {"per": "batch"})}, RecipeError, "per='batch'; accepted are 'step' and"),
        ({"learning_rate": ("cosine", {"warm_up_steps": -1})}, TrainingError, "warm_up_steps was given as -1"),
        ({"learning_rate": 0.3}, RecipeError, "'schedule' has 0.3 for 'learning_rate', which is not a schedule"),
        ({"learning_rate": {"final": 1.0}}, RecipeError, "accepted is a dict with a name"),
        ({"learning_rate": "step_list"}, RecipeError, "missing a required argument: 'milestones'"),
    ],
)
def test_what_is_wrong_is_told_in_one_message_before_the_training(schedule: Any, error: Any, message: str) -> None:
    fixed, mutable = small_parts(schedule=schedule)
    with pytest.raises(Deep500Error) as raised:
        build_recipe(Recipe(fixed, mutable, METRICS))

    assert isinstance(raised.value, error)
    assert message in str(raised.value)


def test_the_recipes_own_schedule_stays_as_it_is() -> None:
    schedule = CosineSchedule()
    made = recipe(schedule)
    before = made.configuration_hash
    execute_recipe(made)

    assert schedule == CosineSchedule()
    assert made.configuration_hash == before
    assert recipe(CosineSchedule(final=0.1)).configuration_hash != before


def test_events_of_a_recipe_may_be_schedules_too() -> None:
    Rates.rates.clear()
    fixed, mutable = small_parts(events=[ScheduleEvent("learning_rate", "cosine"), Rates()])
    execute_recipe(Recipe(fixed, mutable, METRICS))

    assert Rates.rates == pytest.approx(COSINE)
