"""The distance of replicas from their mean."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.communicators.local import run_threads
from deep500.distributed.metrics.consensus_distance import ConsensusDistance


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
