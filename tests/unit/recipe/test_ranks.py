"""Recipes on several ranks: what must be the same, who reports and writes, and what the key ``distributed`` takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from deep500.core.errors import CommunicationError, RecipeError, TrainingError, UnknownNameError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.rank_options import RankOptions
from deep500.distributed.samplers.partitioned_distributed_sampler import PartitionedDistributedSampler
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.measure.metric import Direction, TestMetric
from deep500.recipe._ranks import set_up_ranks
from deep500.recipe.keys import argument_keys
from deep500.recipe.recipe import Recipe
from deep500.recipe.reporter import ConsoleReporter
from deep500.recipe.result import RecipeResult
from deep500.recipe.runner import execute_recipe
from deep500.training.events.csv_log import CSVLogEvent
from deep500.training.events.early_stopping import EarlyStoppingEvent
from deep500.training.events.time_limit import TimeLimitEvent
from deep500.training.metrics.test_accuracy import TestAccuracy
from deep500.training.training_event import RunnerEvent
from tests.unit.recipe.support import Constant, check_schema, small_data, small_parts


def recipe(metrics: Any = None, **changes: Any) -> Recipe:
    return Recipe(*small_parts(**changes), [(TestAccuracy(), 50.0)] if metrics is None else metrics)


def on_ranks(count: int, made: Recipe | Callable[[int], Recipe], **options: Any) -> list[RecipeResult]:
    def work(communicator: Communicator) -> RecipeResult:
        mine = made if isinstance(made, Recipe) else made(communicator.rank)
        return execute_recipe(mine, communicator=communicator, **options)

    return run_threads(count, work, timeout_s=60)


def losses(result: RecipeResult) -> list[float]:
    epochs = result.statistics["epochs"]
    return [epoch[kind]["loss"] for epoch in epochs for kind in ("training", "test")]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_recipe_means_the_same_on_any_number_of_ranks(count: int) -> None:
    one = execute_recipe(recipe())
    found = on_ranks(count, recipe())

    for result in found:
        np.testing.assert_allclose(losses(result), losses(one), rtol=2e-6)
        assert [m.value for m in result.metrics] == [m.value for m in one.metrics]
        assert result.passed
        assert result.statistics["samples"] == one.statistics["samples"]
        assert result.statistics["train_batch_size"] == 8
        assert (result.seeds, result.configuration_hash) == (one.seeds, one.configuration_hash)
        assert result.ranks is not None
        assert (result.ranks["count"], result.ranks["scheme"]) == (count, "allreduce")
    assert one.ranks is None


def test_bytes_of_all_ranks_are_those_of_the_scheme_alone() -> None:
    """A ring allreduce of n bytes sends 2 n (p - 1) / p of them; 12 steps of the network's parameters."""
    found = on_ranks(2, recipe())
    parameters = 4 * 6 + 6 + 6 * 3 + 3

    for result in found:
        assert result.ranks is not None
        assert result.ranks["payload_bytes"] == [12 * 4 * parameters] * 2
        assert result.ranks == found[0].ranks
        assert sum(result.ranks["sent_bytes"]) == sum(result.ranks["received_bytes"]) == 2 * 12 * 4 * parameters


def test_rank_0_alone_reports_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "result.json"
    on_ranks(2, recipe(), output=output, reporter=ConsoleReporter())

    said = capsys.readouterr().out
    assert said.count("PASSED\n") == 2  # the metric's line and the verdict
    assert "2 ranks, scheme allreduce" in said
    content = json.loads(output.read_text())
    assert content["ranks"]["count"] == 2
    check_schema(content)


class RankNumber(TestMetric):
    """Measures something else on each rank, as a clock does."""

    direction = Direction.LOWER
    requires_inputs = True
    requires_outputs = False

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        return float(inputs.optimizer.ranks.rank)


def test_the_verdict_of_rank_0_is_everybodys() -> None:
    found = on_ranks(2, recipe([(RankNumber(), 0.5)]))

    assert [(result.metrics[0].value, result.passed) for result in found] == [(0.0, True)] * 2


@pytest.mark.parametrize(("size", "count", "near"), [(9, 2, "8 or 10"), (1, 2, "2"), (8, 3, "6 or 9")])
def test_a_minibatch_that_cannot_be_dealt_out_is_refused(size: int, count: int, near: str) -> None:
    with pytest.raises(RecipeError, match=f"'batch_size' is {size}.*multiple of {count}, such as {near}"):
        on_ranks(count, recipe(batch_size=size))


def test_ranks_with_different_recipes_are_named() -> None:
    with pytest.raises(RecipeError) as raised:
        on_ranks(3, lambda rank: recipe(batch_size=24 if rank == 2 else 12, seed=rank % 2))

    text = str(raised.value)
    assert "on rank 1 seed is 1, on rank 0 0" in text
    assert "on rank 2 batch_size is 24, on rank 0 12" in text


def test_ranks_with_different_arguments_of_the_scheme_are_named() -> None:
    with pytest.raises(RecipeError, match=r"on rank 1 distributed_kwargs is .*0\.5.*on rank 0 .*0\.25"):
        on_ranks(2, lambda r: recipe(distributed="top_k", distributed_kwargs={"density": 0.5 if r else 0.25}))


def load_small() -> tuple[NumpyDataset, NumpyDataset]:
    return small_data()


def test_ranks_with_data_of_another_size_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank reads its own files: the recipe is the same, what it gives is not."""

    def work(communicator: Communicator) -> RecipeResult:
        whole = small_data()
        short = (NumpyDataset(whole[0].data[:40], "input", whole[0].labels[:40], "label"), whole[1])

        def by_rank() -> Any:
            return short if communicator.rank == 1 else whole

        by_rank.__module__, by_rank.__qualname__ = load_small.__module__, load_small.__qualname__
        return execute_recipe(recipe(dataset=by_rank), communicator=communicator)

    with pytest.raises(RecipeError, match="rank 0 has 48 samples to train and 24 to test; rank 1 has 40"):
        run_threads(2, work, timeout_s=60)


def test_the_key_takes_names_classes_and_arguments() -> None:
    assert argument_keys("distributed") == ("distributed_args", "distributed_kwargs")
    for value in ("local_sgd", AllReduce):
        arguments = {"distributed_kwargs": {"period": 2}} if value == "local_sgd" else {}
        found = on_ranks(2, recipe(distributed=value, **arguments))
        assert found[0].ranks is not None
        assert found[0].ranks["scheme"] == (value if isinstance(value, str) else "AllReduce")


class Neighbours(DistributedOptimizer):
    """The published form: a step of its own, tensor by tensor."""

    def step(self, inputs: Any) -> Any:
        self.base_optimizer.new_input()
        output = self.executor.inference_and_backprop(inputs, self.base_optimizer.loss)
        for param_name, grad_name in self.network.gradient(self.base_optimizer.loss):
            param, grad = self.network.fetch_tensors([param_name, grad_name])
            grad = self.communication.reduce_from_neighbors(grad) / 3
            self.network.feed_tensor(param_name, self.base_optimizer.update_rule(grad, param, param_name))
        return output


def test_the_published_form_is_a_scheme_of_a_recipe() -> None:
    found = on_ranks(2, recipe(distributed=Neighbours))

    assert found[0].ranks is not None
    assert found[0].ranks["scheme"] == "Neighbours"
    assert found[0].passed
    assert losses(found[0]) == losses(found[1])  # the tests are rank 0's, whose replica is not the other's


@pytest.mark.parametrize("value", [TestAccuracy, dict, object])
def test_what_is_no_scheme_is_refused(value: Any) -> None:
    with pytest.raises(RecipeError, match=r"'distributed' is .* no scheme.*allreduce"):
        execute_recipe(recipe(distributed=value))


def test_an_unknown_scheme_has_a_near_name() -> None:
    with pytest.raises(UnknownNameError, match="allreduce"):
        execute_recipe(recipe(distributed="alreduce"))


def test_unknown_arguments_of_a_scheme_are_named() -> None:
    with pytest.raises(RecipeError, match=r"'distributed'.*'densty'.*density"):
        execute_recipe(recipe(distributed="top_k", distributed_kwargs={"densty": 0.1}))


def test_a_single_process_with_the_key_is_one_rank_of_the_local_communicator() -> None:
    found, plain = execute_recipe(recipe(distributed="allreduce")), execute_recipe(recipe())

    assert found.ranks is not None
    assert (found.ranks["count"], found.ranks["communicator"]) == (1, "LocalCommunicator")
    assert losses(found) == losses(plain)


def test_without_the_key_and_alone_there_are_no_ranks() -> None:
    assert set_up_ranks(recipe()) is None
    assert set_up_ranks(recipe(), RankOptions(communicator="local")) is not None
    with pytest.raises(UnknownNameError):
        set_up_ranks(recipe(), RankOptions(communicator="carrier_pigeon"))


def test_two_ranks_of_the_local_communicator_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(CommunicationError, match="would each train alone"):
        set_up_ranks(recipe(), RankOptions(communicator="local"))


def test_only_a_communicator_that_survives_goes_on_without_ranks() -> None:
    options = RankOptions(on_failure="shrink")
    with pytest.raises(CommunicationError, match=r"'shrink'.*LocalCommunicator.*deep500\[ulfm\]"):
        on_ranks(2, recipe(), rank_options=options)
    assert execute_recipe(recipe(distributed="allreduce"), rank_options=options).passed  # nobody to go on without


def test_scaled_losses_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"'float16'.*'bfloat16'"):
        execute_recipe(recipe(distributed="allreduce", precision="float16"))


def test_an_optimizer_with_a_step_of_its_own_is_refused() -> None:
    with pytest.raises(TrainingError, match="step of its own"):
        on_ranks(2, recipe(optimizer="lbfgs", optimizer_kwargs=None))


class Counting(RunnerEvent):
    """Notes on which rank it is told of steps."""

    seen: ClassVar[list[int]] = []

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        self.seen.append(runner.optimizer.ranks.rank)


def test_events_that_report_are_rank_0s_and_others_everybodys(tmp_path: Path) -> None:
    Counting.seen.clear()
    on_ranks(2, recipe(events=[CSVLogEvent(tmp_path / "log.csv", every="step"), Counting()]))

    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert len(lines) == 1 + 12
    assert sorted(Counting.seen) == [0] * 12 + [1] * 12


def test_stopping_events_end_all_ranks_at_the_same_step() -> None:
    for events in ([TimeLimitEvent(1e-9)], [EarlyStoppingEvent(patience=1, minimum_change=100.0)]):
        found = on_ranks(2, recipe([(Constant(1.0), None)], events=events, epochs=50))
        assert found[0].statistics["outcome"] == "stopped"
        assert found[0].statistics["steps"] == found[1].statistics["steps"]


def test_a_sampler_of_ranks_in_the_recipe_is_used_as_it_is() -> None:
    found = on_ranks(2, recipe(train_sampler=PartitionedDistributedSampler))

    assert found[0].passed
    assert found[0].statistics["samples"] == 2 * 48
    assert execute_recipe(recipe(train_sampler=PartitionedDistributedSampler)).passed


def test_workers_and_schedules_change_nothing_of_it() -> None:
    more = {"input_pipeline": {"workers": 2}, "schedule": {"learning_rate": {"name": "cosine", "per": "step"}}}
    plain = execute_recipe(recipe(schedule=more["schedule"]))

    np.testing.assert_allclose(losses(on_ranks(2, recipe(**more))[0]), losses(plain), rtol=2e-6)


def test_several_runs_are_run_by_all_ranks_together(tmp_path: Path) -> None:
    found = on_ranks(2, recipe(runs=2), output=tmp_path / "r.json")

    assert found[0].runs is not None
    assert found[1].runs is not None
    assert found[0].runs["values"] == found[1].runs["values"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "r.run-0.json", "r.run-1.json"]


def test_uneven_replicas_are_tested_by_rank_0_and_all_hear_it() -> None:
    class Apart(Scheme):
        keeps_replicas_equal = False

        def after_update(self, context: StepContext) -> None:
            context.wait()

    found = on_ranks(2, recipe(distributed=Apart))

    assert losses(found[0]) == losses(found[1])
    assert found[0].statistics["epochs"][0]["test"]["samples"] == 24
