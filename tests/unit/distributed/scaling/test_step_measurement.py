"""A launch measures every rank: steps, their parts, bytes, clocks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.scaling.design import ScalingDesign
from deep500.distributed.scaling.step_measurement import LaunchMeasurement, measure_launch
from deep500.distributed.volume import traffic
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.support import RankExecutor, batch

DESIGN = ScalingDesign((1, 2), steps=4, warm_up=1)


@pytest.mark.parametrize("scheme", ["allreduce", "asynchronous_parameter_server", "stale_synchronous", "local_sgd"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_every_rank_has_the_same_whole_picture(scheme: str, ranks: int) -> None:
    def measure(communicator):
        optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), communicator, scheme)
        return measure_launch(optimizer, [batch(communicator.rank), batch(7)], DESIGN)

    results = run_threads(ranks, measure)
    documents = [json.dumps(result.to_dict(), allow_nan=False) for result in results]

    assert len(set(documents)) == 1
    found = LaunchMeasurement.from_dict(json.loads(documents[0]))
    assert json.dumps(found.to_dict()) == documents[0]
    assert found.ranks == ranks
    assert found.step_s.shape == (ranks, 4)
    assert (found.step_s > 0).all()
    assert found.split.times_s().shape == (4, ranks, 3)
    assert found.leads_s.shape == (2, 4, ranks)
    assert (found.leads_s[0] <= found.leads_s[1]).all()
    assert np.array_equal(found.slowest_s, found.step_s.max(axis=0))
    assert len(found.clock_offsets) == ranks


def test_bytes_are_the_ledgers_of_the_timed_steps() -> None:
    def measure(communicator):
        optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), communicator)
        return measure_launch(optimizer, [batch()], DESIGN)

    found = run_threads(2, measure)[0]
    expected = sum(traffic("allreduce", "ring", 0, 2, 15, 8).sent.values())

    assert [counted["sent_bytes"] for counted in found.bytes_a_step] == [expected, expected]
    assert found.bytes_a_step[0]["payload_bytes"] == 15 * 8


def test_no_minibatch() -> None:
    optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), LocalCommunicator())
    with pytest.raises(MeasurementError, match="without a minibatch"):
        measure_launch(optimizer, [], DESIGN)
