"""The distance of replicas from their mean."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.metrics.consensus_distance import ConsensusDistance
from tests.unit.distributed.metrics.support import trained


def test_distance_is_the_root_of_the_mean_square() -> None:
    replicas = np.random.default_rng(0).standard_normal((4, 50)).astype(np.float32)

    def measure(communicator):
        metric, own = ConsensusDistance(), replicas[communicator.rank].copy()
        metric.record(own, communicator)
        metric.record(np.ones(3), communicator)
        assert np.array_equal(own, replicas[communicator.rank])
        return metric.distances, metric.measure(None, None)

    results = run_threads(4, measure)
    apart = replicas.astype(np.float64) - replicas.astype(np.float64).mean(axis=0)

    assert len(set(results)) == 1
    (first, second), last = results[0]
    assert first == pytest.approx(np.sqrt((apart**2).sum(axis=1).mean()), rel=1e-12)
    assert second == last == 0.0


def test_nothing_recorded() -> None:
    with pytest.raises(MeasurementError, match="no distance"):
        ConsensusDistance().measure(None, None)


def test_distance_at_the_end_of_a_training() -> None:
    apart = trained(ConsensusDistance, "dpsgd", ranks=4)
    equal = trained(ConsensusDistance, "allreduce")

    assert len({metric.measure(None, None) for metric in apart}) == 1
    assert apart[0].measure(None, None) > 0
    assert [metric.measure(None, None) for metric in equal] == [0, 0]


def test_needs_a_distributed_training() -> None:
    with pytest.raises(MeasurementError, match="key 'distributed'"):
        ConsensusDistance().begin(object())
    with pytest.raises(MeasurementError, match="not begun"):
        ConsensusDistance().end(None)
