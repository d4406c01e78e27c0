from __future__ import annotations

import pytest

from deep500.core.errors import TrainingError
from deep500.measure.metric import Direction
from deep500.training.metrics.test_loss import TestLoss
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.statistics import EpochRecord, PassRecord, TrainingStatistics
from tests.unit.training.support import make_trainer


def test_it_is_the_last_complete_test_of_the_statistics() -> None:
    tests = [PassRecord(1, 4, 0.1, 0.5), PassRecord(1, 4, 0.1, 0.25), PassRecord(1, 2, 0.1, 9.0, complete=False)]
    stats = TrainingStatistics(3, 4, 4, epochs=[EpochRecord(e, test=test) for e, test in enumerate(tests)])
    metric = TestLoss()

    assert metric.measure(None, stats) == 0.25
    assert (metric.name, metric.unit, metric.direction) == ("TestLoss", "", Direction.LOWER)
    assert metric.accepts(0.25, 0.25)
    assert not metric.accepts(0.26, 0.25)


def test_it_is_measured_without_being_an_event() -> None:
    trainer = make_trainer(lambda executor: GradientDescent(executor, learning_rate=0.5))
    stats = trainer.run_loop(3, [])

    assert stats.epochs[-1].test is not None
    assert TestLoss().measure(trainer, stats) == stats.epochs[-1].test.loss


def test_what_cannot_be_measured_is_said() -> None:
    with pytest.raises(TrainingError, match="received None"):
        TestLoss().measure(None, None)
    with pytest.raises(TrainingError, match="no test was completed"):
        TestLoss().measure(None, TrainingStatistics(1, 2))
