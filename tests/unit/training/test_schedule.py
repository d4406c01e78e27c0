from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import TrainingError, UnknownNameError
from deep500.training.schedule import Schedule, as_schedule
from deep500.training.schedules import (
    ConstantSchedule,
    CosineSchedule,
    ExponentialSchedule,
    OneCycleSchedule,
    PolynomialSchedule,
    StepListSchedule,
    WarmUpSchedule,
)


def test_what_is_given_is_kept_and_the_rest_is_completed() -> None:
    schedule = CosineSchedule(initial=2.0).completed(0.5, 10)

    assert (schedule.initial, schedule.total) == (2.0, 10)
    assert CosineSchedule(total=4).completed(0.5, 10) == CosineSchedule(initial=0.5, total=4)


def test_without_what_it_starts_from_it_has_no_value() -> None:
    with pytest.raises(TrainingError, match="no initial="):
        ConstantSchedule()(0)
    with pytest.raises(TrainingError, match="no total="):
        CosineSchedule(initial=1.0)(0)


@pytest.mark.parametrize("schedule", [CosineSchedule(), OneCycleSchedule(), PolynomialSchedule()])
def test_a_length_that_is_not_known_is_told(schedule: Schedule) -> None:
    with pytest.raises(TrainingError, match=r"needs to know how long the training is.*total="):
        schedule.completed(1.0, None)


def test_restarts_and_factors_need_no_length() -> None:
    assert CosineSchedule(restart_every=3).completed(1.0, None)(3) == 1.0
    assert ExponentialSchedule(0.5).completed(1.0, None)(3) == 0.125


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConstantSchedule(initial="fast"), "initial was given as 'fast'"),
        (lambda: ConstantSchedule(warm_up_steps=-1), "warm_up_steps was given as -1"),
        (lambda: CosineSchedule(restart_every=0), "restart_every was given as 0"),
        (lambda: CosineSchedule(restart_factor=1.5), "restart_factor was given as 1.5"),
        (lambda: CosineSchedule(final=float("nan")), "final was given as nan"),
        (lambda: ExponentialSchedule(every=0), "every was given as 0"),
        (lambda: OneCycleSchedule(rising_share=1.0), "rising_share was given as 1.0"),
        (lambda: OneCycleSchedule(shape="square"), "accepted are 'cosine' and 'linear'"),
        (lambda: PolynomialSchedule(power=0), "power was given as 0"),
        (lambda: StepListSchedule(30), "milestones was given as 30"),
        (lambda: StepListSchedule([5, 3]), "rising order"),
        (lambda: StepListSchedule([5, 5]), "rising order"),
        (lambda: StepListSchedule([3, 5], [0.1]), "1 factors were given for 2 milestones"),
        (lambda: WarmUpSchedule(steps=0), "steps was given as 0"),
        (lambda: WarmUpSchedule(7), "A schedule was given as 7"),
        (lambda: CosineSchedule(warm_up_steps=10).completed(1.0, 10), "leaves nothing"),
        (lambda: WarmUpSchedule("cosine", 10).completed(1.0, 10), "leaves nothing"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        make()


def test_a_training_of_no_steps_has_a_schedule_too() -> None:
    assert CosineSchedule().completed(1.0, 0).total == 0


def test_step_list_takes_a_factor_a_milestone() -> None:
    schedule = StepListSchedule([2, 3], [0.5, 4.0], initial=1.0)

    assert [schedule(count) for count in range(5)] == [1.0, 1.0, 0.5, 2.0, 2.0]


def test_warm_up_comes_before_any_function() -> None:
    schedule = WarmUpSchedule(lambda count: 10.0 + count, 4, 0.0).completed(99.0, 20)

    assert [schedule(count) for count in range(6)] == [0.0, 2.5, 5.0, 7.5, 10.0, 11.0]


def test_warm_up_leaves_the_rest_to_the_other() -> None:
    schedule = WarmUpSchedule("polynomial", 4).completed(1.0, 14)

    assert schedule(4) == 1.0
    assert schedule(9) == 0.5
    assert schedule(14) == 0.0


@pytest.mark.parametrize("total", range(1, 12))
def test_one_cycle_is_finite_for_few_steps(total: int) -> None:
    schedule = OneCycleSchedule(initial=1.0, total=total)

    assert all(0 <= schedule(count) <= 1 for count in range(2 * total))


@pytest.mark.parametrize(
    "value",
    [
        "cosine",
        CosineSchedule,
        CosineSchedule(),
        ("cosine", {}),
        {"name": "cosine"},
        {"name": CosineSchedule},
    ],
    ids=repr,
)
def test_what_stands_for_a_schedule(value: Any) -> None:
    assert as_schedule(value) == CosineSchedule()


def test_arguments_reach_the_schedule() -> None:
    assert as_schedule(("cosine", {"warm_up_steps": 100})) == CosineSchedule(warm_up_steps=100)
    assert as_schedule({"name": "cosine", "final": 0.5}) == CosineSchedule(final=0.5)


def test_unknown_names_and_arguments_are_told() -> None:
    with pytest.raises(UnknownNameError, match=r"no schedule named 'cosin'\. Did you mean 'cosine'\?"):
        as_schedule("cosin")
    with pytest.raises(TrainingError, match=r"unexpected keyword argument 'finale'.*It takes: .*final"):
        as_schedule(("cosine", {"finale": 0.5}))
