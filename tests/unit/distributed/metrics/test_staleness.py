"""The histogram of staleness."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.metrics.staleness import Staleness
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.metrics.support import trained
from tests.unit.distributed.support import RankExecutor


def test_histogram_mean_and_largest() -> None:
    staleness = Staleness()
    for read, applied in [(0, 0), (0, 1), (0, 2), (3, 5), (4, 4)]:
        staleness.record(read, applied)

    assert dict(staleness.histogram) == {0: 2, 1: 1, 2: 2}
    assert staleness.largest == 2
    assert staleness.measure(None, None) == 1.0
    assert dict(staleness.fresh().histogram) == {}


def test_histograms_of_ranks_add_up() -> None:
    staleness = Staleness()
    staleness.add({0: 3, 2: 1})
    staleness.add([(2, 4)])

    assert dict(staleness.histogram) == {0: 3, 2: 5}


def test_refusals() -> None:
    with pytest.raises(MeasurementError, match="no gradient"):
        Staleness().measure(None, None)
    with pytest.raises(MeasurementError, match="older"):
        Staleness().record(2, 1)
    with pytest.raises(MeasurementError, match="read_at"):
        Staleness().record(-1, 1)


@pytest.mark.parametrize("scheme", ["asynchronous_parameter_server", "stale_synchronous"])
def test_histogram_of_a_training_is_the_schemes(scheme: str) -> None:
    metrics = trained(Staleness, scheme, ranks=3)

    assert dict(metrics[0].histogram) == dict(metrics[1].histogram) == dict(metrics[2].histogram)
    assert sum(metrics[0].histogram.values()) == 3 * 4  # no gradient is lost or counted twice
    if scheme == "stale_synchronous":
        assert metrics[0].largest <= 3 * (3 + 1)  # the bound of steps, by all ranks' updates


def test_synchronous_gradients_are_new() -> None:
    (first, second) = trained(Staleness, "allreduce")

    assert dict(first.histogram) == dict(second.histogram) == {0: 4}


def test_only_the_runs_gradients_count() -> None:
    scheme = SimpleNamespace(staleness=lambda: [0, 1, 1])
    optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), LocalCommunicator())
    vars(optimizer)["scheme"] = scheme
    metric = Staleness()
    metric.begin(optimizer)
    scheme.staleness = lambda: [0, 1, 1, 1, 4]
    metric.end(None)

    assert dict(metric.histogram) == {1: 1, 4: 1}


def test_needs_a_distributed_training() -> None:
    with pytest.raises(MeasurementError, match="--ranks"):
        Staleness().begin(SimpleNamespace(optimizer=GradientDescent(RankExecutor())))
    with pytest.raises(MeasurementError, match="not begun"):
        Staleness().end(None)
