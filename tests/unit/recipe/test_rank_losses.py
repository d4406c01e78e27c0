"""Recipes that go on when a rank fails: thread ranks that are lost, and what the others make of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from deep500.core.errors import RecipeError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.metrics.communication_volume import CommunicationVolume
from deep500.distributed.metrics.consensus_distance import ConsensusDistance
from deep500.distributed.metrics.exposed_exchange import ExposedExchange
from deep500.distributed.samplers.distributed_sampler import DistributedSampler
from deep500.recipe._rank_losses import RankLosses
from deep500.recipe.recipe import Recipe
from deep500.recipe.reporter import ConsoleReporter
from deep500.recipe.result import RecipeResult
from deep500.recipe.runner import execute_recipe
from deep500.training.events.csv_log import CSVLogEvent
from deep500.training.metrics.test_accuracy import TestAccuracy
from deep500.training.training_event import RunnerEvent
from tests.unit.distributed.survivors import Lost, Survivor, run
from tests.unit.recipe.support import check_schema, small_data, small_parts

#: One epoch has 48 samples.
SAMPLES = 48


class Watch(RunnerEvent):
    """Loses ranks at a hook, by step and the number that they started with."""

    may_stop = False

    #: Beside the recipe, whose identity they are no part of.
    accidents: ClassVar[list[tuple[str, int, int]]] = []

    def meet(self, hook: str, step: int, runner: Any) -> None:
        communicator = getattr(runner.optimizer, "communicator", None)
        if communicator is None:
            return
        if (hook, step, communicator.world_ranks[communicator.rank]) in self.accidents:
            raise Lost

    def before_step(self, step: int, runner: Any, training_stats: Any, inputs: Any) -> None:
        self.meet("before_step", step, runner)

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        self.meet("after_step", step, runner)

    def after_test_batch(self, runner: Any, training_stats: Any, outputs: Any) -> None:
        self.meet("test", training_stats.steps, runner)

    def after_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
        self.meet("after_epoch", training_stats.steps, runner)


class Recorder:
    """A transformation that notes the samples of each minibatch, which are their numbers."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def __deepcopy__(self, memo: Any) -> Recorder:
        return self

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        self.seen.append(sorted(int(value) for value in batch["input"][:, 0, 0, 0]))
        return batch


def recipe(metrics: Any = None, **changes: Any) -> Recipe:
    changes = {"events": [Watch()], "train_sampler_kwargs": {"drop_last_batch": False}, **changes}
    return Recipe(*small_parts(**changes), [(TestAccuracy(), 30.0)] if metrics is None else metrics)


def on_survivors(
    count: int, made: Recipe | Callable[[int], Recipe], *accidents: tuple[str, int, int], **options: Any
) -> dict[int, RecipeResult]:
    """Run a recipe on thread ranks with accidents: hook, step, rank; return the results of those that are left."""
    found: dict[int, RecipeResult] = {}
    Watch.accidents[:] = accidents

    def work(communicator: Survivor) -> None:
        me = communicator.rank
        own = made if isinstance(made, Recipe) else made(me)
        found[me] = execute_recipe(own, communicator=communicator, **options)

    run(count, work)
    return found


def losses_of(result: RecipeResult) -> list[dict[str, Any]]:
    assert result.ranks is not None
    found: list[dict[str, Any]] = result.ranks["losses"]
    return found


def test_a_faultless_run_is_that_of_other_communicators() -> None:
    one = execute_recipe(recipe())
    found = on_survivors(2, recipe())

    for result in found.values():
        assert losses_of(result) == []
        assert result.statistics["samples"] == one.statistics["samples"] == 2 * SAMPLES
        assert result.first_epoch_batches_hash is not None
        np.testing.assert_allclose(
            [epoch["training"]["loss"] for epoch in result.statistics["epochs"]],
            [epoch["training"]["loss"] for epoch in one.statistics["epochs"]],
            rtol=2e-6,
        )


@pytest.mark.parametrize("hook", ["before_step", "after_step"])
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_the_others_go_on_with_the_whole_minibatch(
    hook: str, lost: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Minibatches of 12: 4 a rank of three, 6 a rank of two. Step 5 is the second one of the second epoch."""
    output = tmp_path / "result.json"
    made = recipe(batch_size=12, epochs=4)
    with caplog.at_level(logging.WARNING):
        found = on_survivors(3, made, (hook, 5, lost), output=output, reporter=ConsoleReporter())

    left = [rank for rank in range(3) if rank != lost]
    assert sorted(found) == left
    step = 5 if hook == "before_step" else 6  # the others have begun the next one when they notice
    for result in found.values():
        assert result.complete
        assert result.passed
        (loss,) = losses_of(result)
        assert (loss["step"], loss["lost"], loss["survivors"]) == (step, [lost], left)
        assert (loss["batch_size"], loss["samples_lost"], loss["warnings"]) == (12, 4, [])
        assert result.statistics["samples"] == 4 * SAMPLES - 4
        assert result.statistics["steps"] == 16
        passes = [epoch["training"] for epoch in result.statistics["epochs"]]
        assert [entry["samples"] for entry in passes] == [SAMPLES, SAMPLES - 4, SAMPLES, SAMPLES]
        assert [epoch["test"]["samples"] for epoch in result.statistics["epochs"]] == [24] * 4
        assert result.first_epoch_batches_hash is None
        assert result.ranks is not None
        assert (result.ranks["count"], len(result.ranks["sent_bytes"])) == (2, 2)
    content = json.loads(output.read_text())
    check_schema(content)
    assert content["complete"]
    assert content["ranks"]["losses"] == losses_of(found[left[0]])
    assert content["environment"]
    said = capsys.readouterr().out
    assert f"Rank {lost} was lost in step {step}" in said
    assert said.splitlines().count("PASSED") == 1
    assert f"Rank {lost} failed; 2 ranks go on" in caplog.text


def numbered() -> tuple[NumpyDataset, NumpyDataset]:
    """Return data whose samples are their numbers, and that one process trains on without infinities."""
    train, test = small_data()
    numbers = np.zeros_like(train.data)
    numbers[:, 0, 0, 0] = np.arange(len(train))
    return NumpyDataset(numbers, "input", train.labels, "label"), test


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("batch", "kept"), [(12, 12), (9, 8)])
def test_after_the_minibatch_of_the_failure_each_sample_is_served_once(batch: int, kept: int, workers: int) -> None:
    recorders = [Recorder() for _ in range(3)]
    more: dict[str, Any] = {"input_pipeline": {"workers": workers}} if workers else {}

    def made(rank: int) -> Recipe:
        return recipe(
            [(TestAccuracy(), None)],
            batch_size=batch,
            dataset=numbered,
            train_transformations=[recorders[rank]],
            optimizer_kwargs={"learning_rate": 1e-6},
            **more,
        )

    found = on_survivors(3, made, ("before_step", 1, 1))

    (loss,) = losses_of(found[0])
    assert (loss["batch_size"], loss["samples_lost"], bool(loss["warnings"])) == (kept, batch // 3, kept != batch)
    if workers:  # they have built minibatches that were thrown away
        assert found[0].statistics["samples"] == 2 * SAMPLES - loss["samples_lost"]
        return
    epoch = -(-(SAMPLES - 2 * batch) // kept) + 2  # minibatches of the epoch of the failure
    first, second = ([seen for recorder in recorders for seen in part(recorder)] for part in (
        lambda recorder: recorder.seen[:epoch], lambda recorder: recorder.seen[epoch:]))  # fmt: skip
    assert sorted(number for seen in first for number in seen) == list(range(SAMPLES))
    assert sorted(number for seen in second for number in seen) == list(range(SAMPLES))
    assert {len(seen) for seen in recorders[0].seen[2 : epoch - 1]} == {kept // 2}
    lengths = [entry["training"]["batches"] for entry in found[0].statistics["epochs"]]
    assert lengths == [epoch, -(-SAMPLES // kept)]


def test_two_ranks_are_lost_one_after_the_other() -> None:
    """Of minibatches of 8, three ranks would have 2 each; two have the 8 of the recipe again."""
    found = on_survivors(4, recipe(), ("before_step", 2, 3), ("before_step", 4, 0))

    assert sorted(found) == [1, 2]
    first, second = losses_of(found[1])
    assert (first["lost"], first["batch_size"], first["samples_lost"]) == ([3], 6, 2)
    assert (second["lost"], second["batch_size"], second["samples_lost"]) == ([0], 8, 2)
    assert "from here on it has 6" in first["warnings"][0]
    samples = [epoch["training"]["samples"] for epoch in found[1].statistics["epochs"]]
    assert samples == [SAMPLES - 4, SAMPLES]
    assert found[1].passed


def test_the_last_one_trains_alone() -> None:
    found = on_survivors(2, recipe(), ("before_step", 3, 0))

    assert list(found) == [1]
    assert found[1].statistics["samples"] == 2 * SAMPLES - 4
    assert [epoch["training"]["samples"] for epoch in found[1].statistics["epochs"]] == [SAMPLES - 4, SAMPLES]
    assert found[1].ranks is not None
    assert (found[1].ranks["count"], found[1].passed) == (1, True)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_test_in_which_a_rank_is_lost_is_repeated(lost: int) -> None:
    found = on_survivors(3, recipe(batch_size=6), ("test", 8, lost))

    assert sorted(found) == [rank for rank in range(3) if rank != lost]
    for result in found.values():
        assert [epoch["test"]["samples"] for epoch in result.statistics["epochs"]] == [24, 24]
        assert losses_of(result)[0]["samples_lost"] == 0
        assert result.statistics["samples"] == 2 * SAMPLES


def test_a_rank_that_is_lost_between_epochs_costs_no_sample() -> None:
    found = on_survivors(3, recipe(batch_size=9), ("after_epoch", 6, 1))

    (loss,) = losses_of(found[0])
    assert (loss["step"], loss["samples_lost"], loss["batch_size"]) == (6, 0, 8)
    assert [epoch["training"]["batches"] for epoch in found[0].statistics["epochs"]] == [6, 6]


def test_events_that_only_report_end_with_the_first_rank(tmp_path: Path) -> None:
    log = CSVLogEvent(tmp_path / "log.csv", every="step")
    found = on_survivors(3, recipe(batch_size=12, events=[log, Watch()]), ("before_step", 5, 0))

    assert losses_of(found[1])[0]["warnings"] == ["Events that only report ended with the first rank: CSVLogEvent."]


@pytest.mark.parametrize(("batch", "lost"), [(12, 0), (9, 1)])
def test_checkpoints_of_the_ranks_that_are_left_go_on_bit_for_bit(batch: int, lost: int, tmp_path: Path) -> None:
    """Rank 1 or 0 is lost in step 2, another training is broken off after step 7, and goes on with two ranks."""

    made, fault = recipe(batch_size=batch, epochs=3), ("before_step", 2, lost)
    whole = on_survivors(3, made, fault, checkpoint=tmp_path / "whole", checkpoint_every="1steps")
    left = sorted(whole)
    faults = [fault, *(("before_step", 7, rank) for rank in left)]
    assert not on_survivors(3, made, *faults, checkpoint=tmp_path / "c", checkpoint_every="1steps")
    assert json.loads((tmp_path / "c/step-000000007/manifest.json").read_text())["ranks"] == 2
    again = on_survivors(2, made, resume=tmp_path / "c")

    assert len(losses_of(whole[left[0]])) == 1
    assert losses_of(again[0]) == losses_of(whole[left[0]])
    assert again[0].statistics["samples"] == whole[left[0]].statistics["samples"]
    for key in ("training", "test"):
        assert [epoch[key]["loss"] for epoch in again[0].statistics["epochs"]] == [
            epoch[key]["loss"] for epoch in whole[left[0]].statistics["epochs"]
        ]


def test_a_checkpoint_in_which_a_rank_is_lost_is_that_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deep500.training.checkpoints.writer import CheckpointWriter

    write_files = CheckpointWriter._write_files

    def fails(writer: CheckpointWriter, place: Path, contents: Any) -> Any:
        if place.name.startswith(".step-000000003.") and any("rank-0" in name for name in contents) and len(gone) < 1:
            gone.append(place)
            raise Lost
        return write_files(writer, place, contents)

    gone: list[Path] = []
    monkeypatch.setattr(CheckpointWriter, "_write_files", fails)
    found = on_survivors(3, recipe(batch_size=12), checkpoint=tmp_path / "c", checkpoint_every="1steps")

    assert sorted(found) == [1, 2]
    assert found[1].passed
    manifests = {
        path.parent.name: json.loads(path.read_text()).get("ranks") for path in tmp_path.glob("c/step-*/manifest.json")
    }
    assert manifests == {f"step-{step:09d}": 2 for step in (6, 7, 8)}
    assert not gone[0].exists()


def test_later_runs_of_several_begin_with_the_ranks_that_are_left(tmp_path: Path) -> None:
    found = on_survivors(3, recipe(batch_size=9, runs=2), ("before_step", 2, 0), output=tmp_path / "r.json")

    assert sorted(found) == [1, 2]
    contents = {path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    assert sorted(contents) == ["r.json", "r.run-0.json", "r.run-1.json"]
    for content in contents.values():
        check_schema(content)
    (loss,) = contents["r.run-1.json"]["ranks"]["losses"]
    assert (loss["step"], loss["lost"], loss["batch_size"], loss["samples_lost"]) == (0, [0], 8, 0)
    assert contents["r.json"]["passed"]


def test_metrics_that_ranks_measure_together_are_those_of_the_ranks_that_are_left() -> None:
    metrics = [(ConsensusDistance(), 0.0), (ExposedExchange(), None), (CommunicationVolume(), None)]
    found = on_survivors(3, recipe(metrics, batch_size=12), ("before_step", 5, 0))

    assert [result.passed for result in found.values()] == [True, True]
    assert [metric.value for metric in found[1].metrics] == [metric.value for metric in found[2].metrics]
    assert all(metric.value is not None for metric in found[1].metrics)


def test_a_rank_that_fails_before_the_training_ends_all() -> None:
    def made(rank: int) -> Recipe:
        def data() -> Any:
            if rank == 1:
                raise Lost
            return small_data()

        data.__qualname__ = "data"
        return recipe(dataset=data)

    with pytest.raises(Exception, match="rank 1 was lost"):
        on_survivors(2, made)


class OwnStep(DistributedOptimizer):
    """Has a step of its own."""

    def step(self, inputs: Any) -> Any:
        return super().step(inputs)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"distributed": OwnStep}, "'distributed' is OwnStep, which has a step of its own"),
        ({"train_sampler": DistributedSampler}, "'train_sampler' is DistributedSampler, whose samples cannot be dealt"),
        ({"batch_size": 9}, "multiple of 2"),
    ],
)
def test_what_cannot_go_on_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        on_survivors(2, recipe(**changes))


def test_losses_are_kept_and_begin_with_those_before() -> None:
    first, second = RankLosses(), RankLosses()
    first.found.append({"step": 1, "lost": [2]})
    second.found.append({"step": 3, "lost": [0]})
    second.restore(first.state())

    assert [entry["step"] for entry in second.found] == [1, 3]
