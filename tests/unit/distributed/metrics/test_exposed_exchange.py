"""The exposed exchange of the rank that waits longest."""

from __future__ import annotations

import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.metrics.exposed_exchange import ExposedExchange
from deep500.distributed.time_split import StepTimes, TimeSplit
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.distributed.metrics.support import trained
from tests.unit.distributed.support import RankExecutor


def test_largest_of_the_medians() -> None:
    split = TimeSplit()
    metric = ExposedExchange(split)
    for step in range(3):
        split.record([StepTimes(1, 1, 0.1 * step), StepTimes(1, 1, 0.3)])

    assert metric.measure(None, None) == 0.3


def test_nothing_recorded() -> None:
    with pytest.raises(MeasurementError, match="no step"):
        ExposedExchange().measure(None, None)


def test_times_of_a_training() -> None:
    first, second = trained(ExposedExchange, "allreduce", steps=7)

    assert first.split.steps == second.split.steps == 7
    assert (first.split.times_s() == second.split.times_s()).all()
    assert first.measure(None, None) == second.measure(None, None) > 0
    assert [rank.compute_s.estimate > 0 for rank in first.split.by_rank()] == [True, True]


def test_training_that_breaks_off_leaves_nothing_behind() -> None:
    optimizer = DistributedOptimizer(GradientDescent(RankExecutor()), LocalCommunicator())
    metric = ExposedExchange()
    metric.begin(optimizer)
    assert "_complete" in vars(optimizer.communicator)
    metric.after_training(None, None)  # type: ignore[arg-type]

    assert "_complete" not in vars(optimizer.communicator)


def test_needs_a_distributed_training() -> None:
    with pytest.raises(MeasurementError, match="--ranks"):
        ExposedExchange().begin(object())
    with pytest.raises(MeasurementError, match="not begun"):
        ExposedExchange().end(None)
