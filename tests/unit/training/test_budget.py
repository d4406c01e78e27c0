from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import TrainingError
from deep500.training.budget import Budget
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.statistics import TrainingStatistics
from tests.unit.training.support import clusters


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("samples", [1, 7, 27, 28, 29, 30, 31, 60, 61])
def test_steps_of_a_budget_of_samples(samples: int, drop: bool) -> None:
    sampler = ShuffleSampler(clusters(30), 7, drop_last_batch=drop)
    done = steps = 0
    while done < samples:
        for batch in sampler:
            done += len(batch["label"])
            steps += 1
            if done >= samples:
                break
        sampler.reset()

    budget = Budget.of(None, None, samples, None)
    assert budget.steps_planned(sampler) == steps
    assert budget.epochs_planned(sampler) == -(-steps // len(sampler))


def test_plans() -> None:
    sampler = ShuffleSampler(clusters(30), 7, drop_last_batch=True)

    assert (Budget.of(3, None, None, None).steps_planned(sampler), len(sampler)) == (12, 4)
    assert Budget.of(None, 9, None, None).epochs_planned(sampler) == 3
    assert Budget.of(None, None, None, 2.5).steps_planned(sampler) is None
    assert Budget.of(None, None, None, 2.5).epochs_planned(sampler) is None


def test_what_is_spent() -> None:
    stats = TrainingStatistics(1, 7, steps=10, samples=70, epochs_done=2)

    assert [Budget.of(n, None, None, None).is_spent(stats) for n in (2, 3)] == [True, False]
    assert [Budget.of(None, n, None, None).is_spent(stats) for n in (10, 11)] == [True, False]
    assert [Budget.of(None, None, n, None).is_spent(stats) for n in (70, 71)] == [True, False]
    assert [Budget.of(None, None, None, 1.0).is_spent(stats, s) for s in (1.0, 0.9)] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,) * 4, "the budgets: none; accepted is exactly one"),
        ((1, 1, None, None), "epochs=1, steps=1; accepted is exactly one"),
        ((None, -1, None, None), "steps was given as -1"),
        ((None, None, 1.5, None), "samples was given as 1.5"),
        *[((None, None, None, s), "time_limit_s was given as") for s in (-1, True, "1", float("inf"), float("nan"))],
    ],
)
def test_budgets_that_are_not_accepted(arguments: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        Budget.of(*arguments)
