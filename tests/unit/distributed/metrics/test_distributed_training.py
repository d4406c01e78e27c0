"""The metrics of distributed training by name in a recipe, and what they share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.metrics._distributed_training import distributed_optimizer, uncounted
from deep500.distributed.metrics.communication_volume import CommunicationVolume
from deep500.distributed.metrics.consensus_distance import ConsensusDistance
from deep500.distributed.metrics.exposed_exchange import ExposedExchange
from deep500.distributed.metrics.staleness import Staleness
from deep500.measure.metric import TestMetric
from deep500.recipe.recipe import Recipe
from deep500.recipe.runner import execute_recipe
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.support import RankExecutor, batch

NAMES = ("communication_volume", "exposed_exchange", "consensus_distance", "staleness")


def recipe(**changes: object) -> Recipe:
    fixed = {"model": "mlp", "model_kwargs": {"hidden": (8,)}, "dataset": "digits", "steps": 12}
    mutable = {"batch_size": 64, "executor": "reference", "optimizer": "momentum", **changes}
    return Recipe(fixed, mutable, [(name, None) for name in NAMES])


def test_metrics_by_name_in_a_recipe() -> None:
    values: dict[str, list[float]] = {}

    def run(communicator) -> None:
        result = execute_recipe(recipe(distributed="allreduce"), communicator=communicator)
        assert result.complete
        for metric in result.metrics:
            values.setdefault(metric.name, []).append(metric.value)

    run_threads(2, run)

    assert {name: len(found) for name, found in values.items()} == dict.fromkeys(values, 2)
    parameters = 64 * 8 + 8 + 8 * 10 + 10
    assert values["ConsensusDistance"] == [0, 0]
    assert values["Staleness"] == [0, 0]
    assert values["ExposedExchange"][0] == values["ExposedExchange"][1] > 0
    assert set(values["CommunicationVolume"]) == {12 * 4 * parameters}  # 2 (p - 1) n / p of the steps, and no more


@pytest.mark.parametrize("scheme", ["stale_synchronous", "asynchronous_parameter_server", "dpsgd"])
def test_metrics_of_schemes_that_let_replicas_part(scheme: str) -> None:
    found: list[dict[str, float]] = []

    def run(communicator) -> None:
        result = execute_recipe(recipe(distributed=scheme), communicator=communicator)
        found.append({metric.name: metric.value for metric in result.metrics})

    run_threads(2, run)

    assert found[0]["Staleness"] == found[1]["Staleness"]
    assert found[0]["ConsensusDistance"] == found[1]["ConsensusDistance"]
    assert found[0]["Staleness"] > 0 or scheme == "dpsgd"


def test_recipe_that_is_not_distributed_says_what_to_do() -> None:
    with pytest.raises(MeasurementError, match="--ranks"):
        execute_recipe(recipe())


def test_optimizer_is_found() -> None:
    optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), LocalCommunicator())

    assert distributed_optimizer("X", optimizer) is optimizer
    assert distributed_optimizer("X", SimpleNamespace(optimizer=optimizer)) is optimizer
    with pytest.raises(MeasurementError, match="X is of distributed trainings"):
        distributed_optimizer("X", None)


def test_what_metrics_exchange_is_not_counted() -> None:
    def exchange(communicator) -> tuple[float, int]:
        optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), communicator)
        before = communicator.ledger.snapshot()
        apart, buffer = uncounted(optimizer), np.ones(100)
        apart.allreduce(buffer)
        assert apart.rank == communicator.rank
        return buffer[0], (communicator.ledger.snapshot() - before).sent_bytes

    assert run_threads(2, exchange) == [(2.0, 0), (2.0, 0)]


@pytest.mark.parametrize("make", [CommunicationVolume, ConsensusDistance, ExposedExchange, Staleness])
def test_end_needs_a_begin_each_time(make: type[TestMetric]) -> None:
    optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), LocalCommunicator())
    metric = make()
    for _ in range(2):
        with pytest.raises(MeasurementError, match=f"{make.__name__} ends a run that was not begun"):
            metric.end(None)
        metric.begin(optimizer)
        optimizer.step(batch())
        metric.end(None)


def test_begin_that_is_refused_has_begun_nothing() -> None:
    metric = ConsensusDistance()
    with pytest.raises(MeasurementError, match="received None"):
        metric.begin(None)
    with pytest.raises(MeasurementError, match="not begun"):
        metric.end(None)
