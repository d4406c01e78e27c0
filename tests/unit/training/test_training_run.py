from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, TrainingError
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.statistics import Outcome, TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent, StopTraining
from tests.unit.training.support import LinearExecutor, clusters, make_trainer


def trainer_of(**arguments: Any) -> Trainer:
    return make_trainer(lambda executor: AdamOptimizer(executor, "loss", 0.05), **arguments)


class Snapshots(RunnerEvent):
    """Takes a snapshot at every place where one is allowed."""

    comes_last = True

    def __init__(self) -> None:
        self.taken: list[Any] = []

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        self.taken.append(runner.state())

    def before_training(self, runner: Any, training_stats: Any) -> None:
        self.taken.append(runner.state())

    def after_test_set(self, runner: Any, training_stats: Any) -> None:
        self.taken.append(runner.state())

    def after_training_set(self, runner: Any, training_stats: Any) -> None:
        self.taken.append(runner.state())

    def after_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
        self.taken.append(runner.state())

    def before_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
        self.taken.append(runner.state())

    def after_training(self, runner: Any, training_stats: Any) -> None:
        self.taken.append(runner.state())


class Remembering(RunnerEvent):
    """Counts the hooks that it is told, in a state."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def before_training(self, runner: Any, training_stats: Any) -> None:
        self.counts = {}

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        self.counts["steps"] = self.counts.get("steps", 0) + 1

    def after_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
        self.counts["epochs"] = self.counts.get("epochs", 0) + 1

    def after_test_set(self, runner: Any, training_stats: Any) -> None:
        self.counts["tests"] = self.counts.get("tests", 0) + 1

    def state(self) -> dict[str, Any]:
        return dict(self.counts)

    def restore(self, state: Mapping[str, Any]) -> None:
        self.counts = dict(state)


def summary(trainer: Trainer) -> Any:
    """Return all that a training gives but its times."""
    stats = trainer.statistics
    assert stats is not None
    passes = [p for record in stats.epochs for p in (record.training, record.test) if p]
    tests = [(test.step, test.epoch, test.result.loss) for test in stats.all_evaluations]
    numbers = [(p.batches, p.samples, p.loss, p.accuracy_percent, list(p.step_losses), p.complete) for p in passes]
    place = trainer.train_sampler.epoch, trainer.train_sampler.position
    return numbers, tests, place, stats.steps, stats.outcome, trainer.executor.network.weights_hash()


BUDGETS: list[dict[str, Any]] = [
    {"epochs": 3},
    {"steps": 9},
    {"steps": 8, "evaluate_every_steps": 3},
    {"samples": 50, "evaluate_every_steps": 2},
    {"epochs": 2, "evaluate_every_steps": 1, "test_before": True},
    {"epochs": 2, "evaluate_every_steps": 4},
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_from_every_snapshot_it_goes_on_to_the_same_end(budget: dict[str, Any]) -> None:
    whole, snapshots, counts = trainer_of(), Snapshots(), Remembering()
    whole.run_loop(events=[snapshots, counts], **budget)
    expected = summary(whole)

    assert len(snapshots.taken) > 10
    for snapshot in snapshots.taken:
        again, remembering = trainer_of(), Remembering()
        again.restore(snapshot)
        again.run_loop(events=[remembering], **budget)
        assert summary(again) == expected
        assert remembering.counts == counts.counts


def test_snapshot_shares_no_memory_with_the_training() -> None:
    trainer = trainer_of()
    trainer.run_loop(1, [])
    snapshot = trainer.state()
    before = {n: v.copy() for n, v in snapshot["executor"]["parameters"].items()}
    trainer.run_loop(1, [])

    assert all(np.array_equal(before[n], v) for n, v in snapshot["executor"]["parameters"].items())
    assert snapshot["statistics"]["steps"] == 4


def test_budget_of_steps_ends_within_an_epoch_with_its_test() -> None:
    stats = trainer_of().run_loop(steps=6, events=[])

    assert (stats.steps, stats.samples, stats.outcome) == (6, 42, Outcome.COMPLETED)
    assert (stats.budget, stats.epochs_planned, stats.steps_planned) == ({"steps": 6}, 2, 6)
    assert [record.training.batches for record in stats.epochs if record.training] == [4, 2]
    assert [record.steps for record in stats.epochs] == [4, 6]
    assert stats.epochs[1].test is not None


def test_budget_of_samples_ends_with_the_step_that_reaches_it() -> None:
    assert trainer_of().run_loop(samples=15, events=[]).samples == 21


def test_budget_of_seconds_counts_no_test() -> None:
    stats = trainer_of().run_loop(time_limit_s=0.05, events=[], evaluate_every_steps=1)

    assert stats.outcome is Outcome.COMPLETED
    assert stats.training_s >= 0.05
    assert stats.steps > 1
    assert stats.training_s < 0.05 + 10 * max(r.training.duration_s for r in stats.epochs if r.training)
    assert stats.testing_s > 0


@pytest.mark.parametrize("budget", [{"epochs": 0}, {"steps": 0}, {"samples": 0}, {"time_limit_s": 0}], ids=str)
def test_budget_of_nothing(budget: dict[str, Any]) -> None:
    stats = trainer_of().run_loop(events=[], **budget)

    assert (stats.steps, stats.epochs, stats.outcome) == (0, [], Outcome.COMPLETED)


def test_evaluations_within_epochs() -> None:
    stats = trainer_of().run_loop(2, [], evaluate_every_steps=2, test_before=True)

    assert [(e.step, e.epoch) for e in stats.evaluations] == [(2, 0), (6, 1)]
    assert [(e.step, e.epoch) for e in stats.all_evaluations] == [(0, -1), (2, 0), (4, 0), (6, 1), (8, 1)]
    times_s = [e.training_s for e in stats.all_evaluations]
    assert times_s == sorted(times_s)
    assert times_s[-1] == stats.training_s
    assert stats.test_accuracy == stats.epochs[-1].test.accuracy_percent if stats.epochs[-1].test else False


class SlowTest(RunnerEvent):
    def after_test_batch(self, runner: Any, training_stats: Any, outputs: Any) -> None:
        import time

        time.sleep(0.02)


def test_time_of_tests_is_not_that_of_the_training() -> None:
    stats = trainer_of().run_loop(1, [SlowTest()], evaluate_every_steps=1)

    assert stats.testing_s >= 4 * 2 * 0.02
    assert stats.training_s < 0.08


def test_without_validation_set_nothing_is_evaluated() -> None:
    assert trainer_of(tested=False).run_loop(1, [], evaluate_every_steps=1).evaluations == []


def test_third_set_is_tested_on_once_in_the_end() -> None:
    executor = LinearExecutor()
    samplers = [ShuffleSampler(clusters(), 7), OrderedSampler(clusters(11), 7), OrderedSampler(clusters(5), 7)]
    trainer = Trainer(*samplers[:2], executor, GradientDescent(executor), test_sampler=samplers[2])
    stats = trainer.run_loop(2, [])

    assert stats.final_test is not None
    assert stats.final_test.samples == 5
    assert stats.test_accuracy == stats.epochs[-1].test.accuracy_percent if stats.epochs[-1].test else False
    with pytest.raises(TrainingError, match="test_sampler are the same"):
        Trainer(samplers[0], samplers[1], executor, trainer.optimizer, test_sampler=samplers[1])


def test_finished_training_is_not_trained_again() -> None:
    trainer = trainer_of()
    trainer.run_loop(2, [])
    again = trainer_of()
    again.restore(trainer.state())
    stats = again.run_loop(2, [])

    assert (stats.steps, stats.outcome) == (8, Outcome.COMPLETED)
    assert summary(again) == summary(trainer)


def test_larger_budget_goes_on_further() -> None:
    trainer, whole = trainer_of(), trainer_of()
    trainer.run_loop(2, [])
    again = trainer_of()
    again.restore(trainer.state())
    again.run_loop(4, [])
    whole.run_loop(4, [])

    assert summary(again) == summary(whole)


def test_stopped_training_stays_stopped() -> None:
    class Stopping(RunnerEvent):
        def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
            if step == 2:
                raise StopTraining

    trainer = trainer_of()
    trainer.run_loop(2, [Stopping()])
    again = trainer_of()
    again.restore(trainer.state())
    stats = again.run_loop(2, [])

    assert (stats.steps, stats.outcome) == (3, Outcome.STOPPED)


class Asking(RunnerEvent):
    """Asks for a snapshot at a hook where there is none."""

    def before_step(self, step: int, runner: Any, training_stats: Any, inputs: Any) -> None:
        with pytest.raises(CheckpointError, match="within a step"):
            runner.state()

    def after_test_batch(self, runner: Any, training_stats: Any, outputs: Any) -> None:
        with pytest.raises(CheckpointError, match="within a test"):
            runner.state()


def test_snapshots_within_steps_and_tests_are_refused() -> None:
    assert trainer_of().run_loop(1, [Asking()]).complete


def test_snapshot_of_another_training_changes_nothing() -> None:
    snapshot = trainer_of()
    snapshot.run_loop(1, [])
    state = snapshot.state()
    trainer = trainer_of(batch_size=5)
    before = trainer.executor.network.weights_hash()
    with pytest.raises(CheckpointError, match="batch_size was 7, here it is 5"):
        trainer.restore(state)
    assert trainer.executor.network.weights_hash() == before
    with pytest.raises(CheckpointError, match="holds no optimizer"):
        trainer_of().restore({name: part for name, part in state.items() if name != "optimizer"})
    with pytest.raises(CheckpointError, match="has not begun"):
        trainer_of().state()
    with pytest.raises(CheckpointError, match="no statistics"):
        trainer_of().restore({**state, "statistics": {"epochs": 3}})


def test_statistics_survive_a_snapshot() -> None:
    stats = trainer_of().run_loop(2, [], evaluate_every_steps=3, test_before=True)

    assert TrainingStatistics.from_state(stats.state()) == stats


@pytest.mark.parametrize("every", [0, -1, 1.5, True, "2"])
def test_interval_of_tests_that_is_not_accepted(every: Any) -> None:
    with pytest.raises(TrainingError, match="evaluate_every_steps was given as"):
        trainer_of().run_loop(1, [], evaluate_every_steps=every)
