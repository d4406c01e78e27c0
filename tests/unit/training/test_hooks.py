"""Whether a training on several ranks ends is rank 0's decision, at whatever hook an event asks for the end."""

from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import TrainingError
from deep500.distributed.agreement import CommunicatorRanks
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.samplers.distributed_sampler import DistributedSampler
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import OptimizerEvent, RunnerEvent, SamplerEvent, StopTraining
from tests.unit.distributed.support import RankExecutor
from tests.unit.training.support import clusters

HOOKS = (
    "before_training",
    "before_epoch",
    "before_training_set",
    "before_step",
    "before_optimizer_step",
    "after_optimizer_step",
    "after_step",
    "after_training_set",
    "before_test_set",
    "before_test_batch",
    "after_test_batch",
    "after_test_set",
    "after_epoch",
)


def stopping(hook: str, rank: int, call: int = 1) -> type[Any]:
    """Return an event that asks for the end at the given call of a hook, on one rank alone."""

    class Stopping(RunnerEvent, OptimizerEvent):
        def __init__(self, here: int) -> None:
            self.here, self.calls = here, 0

    def stop(self: Any, *arguments: Any) -> None:
        self.calls += 1
        if self.here == rank and self.calls == call:
            raise StopTraining

    setattr(Stopping, hook, stop)
    return Stopping


class Last(RunnerEvent):
    """Exchanges something itself after each step, as a checkpoint does."""

    comes_last = True

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        ranks = runner.optimizer.ranks
        assert ranks.gathered(step) == [step] * ranks.size


def train(communicator: Communicator, kinds: list[type[Any]], **budget: Any) -> TrainingStatistics:
    ranks, executor = CommunicatorRanks(communicator), RankExecutor()
    ranks.follow(DistributedOptimizer(GradientDescent(executor, learning_rate=0.1), communicator))
    optimizer = ranks._optimizer
    assert optimizer is not None
    trainer = Trainer(
        DistributedSampler(clusters(24), 4, communicator, seed=1),
        OrderedSampler(clusters(10), 3),
        executor,
        optimizer,
    )
    events = [kind(communicator.rank) if kind is not Last else Last() for kind in kinds]
    return trainer.run_loop(events=events, **(budget or {"epochs": 2}))


def told(stats: TrainingStatistics) -> tuple[Any, ...]:
    tests = [evaluation.result.samples for evaluation in stats.all_evaluations]
    return stats.outcome.value, stats.steps, stats.samples, len(stats.epochs), tests


@pytest.mark.parametrize("hook", HOOKS)
def test_rank_0_ends_it_on_all_ranks_at_the_same_place(hook: str) -> None:
    first, second = run_threads(2, lambda c: told(train(c, [stopping(hook, 0), Last])), timeout_s=30)

    assert first == second
    assert first[0] == "stopped"


@pytest.mark.parametrize("hook", HOOKS)
def test_another_rank_ends_nothing(hook: str) -> None:
    found = run_threads(2, lambda c: told(train(c, [stopping(hook, 1), Last])), timeout_s=30)

    assert found == [("completed", 6, 48, 2, [10, 10])] * 2


def test_statistics_are_those_of_all_ranks() -> None:
    one, two = (run_threads(count, lambda c: train(c, [], epochs=1), timeout_s=30)[0].epochs[0] for count in (1, 2))

    assert one.training is not None
    assert two.training is not None
    assert one.test is not None
    assert two.test is not None
    assert (two.training.batches, two.training.samples) == (3, 24)
    assert (two.test.batches, two.test.samples) == (one.test.batches, one.test.samples) == (4, 10)
    assert len(two.test.step_losses) == 4


@pytest.mark.parametrize(("budget", "steps"), [({"samples": 17}, 3), ({"samples": 16}, 2), ({"steps": 5}, 5)])
def test_budgets_are_those_of_all_ranks(budget: dict[str, int], steps: int) -> None:
    found = run_threads(2, lambda c: train(c, [], **budget), timeout_s=30)

    assert [(stats.steps, stats.steps_planned, stats.train_batch_size) for stats in found] == [(steps, steps, 8)] * 2


def test_the_time_is_over_when_it_is_on_rank_0() -> None:
    found = run_threads(2, lambda c: told(train(c, [], time_limit_s=0.2)), timeout_s=30)

    assert found[0] == found[1]
    assert found[0][0] == "completed"
    assert found[0][1] > 0


def test_an_event_within_the_step_is_told_where_it_may_stop() -> None:
    class InSampler(SamplerEvent):
        def __init__(self, here: int) -> None:
            pass

        def after_sampling(self, sampler: Any, samples: Any) -> None:
            raise StopTraining

    with pytest.raises(TrainingError, match=r"within a step, where ranks cannot agree.*after_step"):
        run_threads(2, lambda c: train(c, [InSampler]), timeout_s=30)
