from __future__ import annotations

import pytest

from deep500.core.errors import TrainingError
from deep500.measure.metric import Direction
from deep500.training.metrics.test_accuracy import TestAccuracy
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.statistics import EpochRecord, PassRecord, TrainingStatistics
from tests.unit.training.support import make_trainer


def test_it_is_the_last_test_of_the_statistics() -> None:
    stats = TrainingStatistics(2, 4, 4)
    stats.epochs = [
        EpochRecord(e, test=PassRecord(1, 4, 0.1, 1.0, accuracy)) for e, accuracy in enumerate((25.0, 75.0))
    ]
    metric = TestAccuracy()

    assert metric.measure(None, stats) == 75.0
    assert metric.measure_summary(None, stats) == "75 %"
    assert (metric.name, metric.unit, metric.direction, metric.reruns) == ("TestAccuracy", "%", Direction.HIGHER, 0)
    assert metric.accepts(75.0, 75.0)
    assert metric.margin(75.0, 93.0) == -18.0


def test_it_is_measured_without_being_an_event() -> None:
    trainer = make_trainer(lambda executor: GradientDescent(executor, learning_rate=0.5))

    assert TestAccuracy().measure(trainer, trainer.run_loop(3, [])) == 100.0


def test_what_cannot_be_measured_is_said() -> None:
    with pytest.raises(TrainingError, match="received None"):
        TestAccuracy().measure(None, None)
    with pytest.raises(TrainingError, match="was not counted"):
        TestAccuracy().measure(None, TrainingStatistics(1, 2))


def test_what_cannot_be_measured_is_said_before_training() -> None:
    untested = make_trainer(GradientDescent, tested=False)
    with pytest.raises(TrainingError, match="no validation sampler"):
        untested.run_loop(1, [TestAccuracy()])

    unnamed = make_trainer(GradientDescent)
    unnamed.network_output = None
    with pytest.raises(TrainingError, match="network_output"):
        unnamed.run_loop(1, [TestAccuracy()])
    assert unnamed.statistics is not None
    assert unnamed.statistics.epochs == []
