from __future__ import annotations

import pytest

from deep500.core.errors import TrainingError
from deep500.measure.metric import Direction
from deep500.training.metrics.training_accuracy import TrainingAccuracy
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.training.support import make_trainer


def test_it_is_counted_when_it_is_an_event_and_not_otherwise() -> None:
    metric = TrainingAccuracy()
    trainer = make_trainer(lambda executor: GradientDescent(executor, learning_rate=0.5))

    with pytest.raises(TrainingError, match=r"run_loop\(epochs, \[metric\]\)"):
        metric.measure(trainer, trainer.run_loop(1, []))
    stats = trainer.run_loop(3, [metric])

    assert metric.measure(trainer, stats) == 100.0
    assert (metric.unit, metric.direction) == ("%", Direction.HIGHER)


def test_metrics_keep_no_state_between_runs() -> None:
    metric = TrainingAccuracy()
    trainer = make_trainer(GradientDescent)
    stats = trainer.run_loop(1, [metric])

    assert metric.measure(trainer, stats) == metric.fresh().measure(trainer, stats)


def test_what_cannot_be_measured_is_said() -> None:
    trainer = make_trainer(GradientDescent)
    trainer.train_sampler.dataset._classes = None

    with pytest.raises(TrainingError, match="class numbers"):
        trainer.run_loop(1, [TrainingAccuracy()])
    with pytest.raises(TrainingError, match="received"):
        TrainingAccuracy().measure(None, {})
