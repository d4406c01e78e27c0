from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.training.metrics.test_accuracy import TestAccuracy
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.training_event import RunnerEvent, StopTraining
from deep500.training.validation.training_check import test_training as check_training
from tests.unit.training.support import LinearExecutor, clusters


def run(rate: float = 0.5, **options: Any) -> Any:
    executor = LinearExecutor()
    data = options.pop("data", clusters())
    optimizer = GradientDescent(executor, "loss", rate)
    return check_training(executor, data, clusters(11, seed=1), optimizer, batch_size=7, **options)


def test_training_that_learns_passes() -> None:
    report = run(metrics=[TestAccuracy()])

    [accuracy] = report
    assert report.passed
    assert accuracy == report.statistics.test_accuracy > 90
    assert report.last_loss < report.first_loss
    assert "PASSED" in str(report)


def test_equal_training_equals_its_reference() -> None:
    first = run().statistics
    assert isinstance(first, TrainingStatistics)

    assert run(reference=first).largest_difference == 0.0
    losses = [loss for record in first.epochs for loss in record.training.step_losses]
    assert run(reference=losses).passed
    with pytest.raises(TrainingError, match="The loss of step 2 is"):
        run(0.4, reference=first)
    with pytest.raises(TrainingError, match="losses of 3 steps; this training made 8"):
        run(reference=losses[:3])


def test_training_that_does_not_learn_fails() -> None:
    with pytest.raises(TrainingError, match="loss does not fall"):
        run(0.0, data=OrderedSampler(clusters(), 30))
    samples = clusters(7)[:]
    again = NumpyDataset(np.tile(samples["input"], (4, 1)), "input", np.tile(samples["label"], 4), "label", 3)
    with pytest.raises(TrainingError, match="loss does not fall"):
        run(0.0, data=OrderedSampler(again, 7), epochs=1)
    with np.errstate(all="ignore"), pytest.raises(TrainingError, match="loss of step 2 is nan"):
        run(1e308)


def test_training_that_is_ended_early_is_not_wrong_by_itself() -> None:
    class Stopping(RunnerEvent):
        def after_step(self, step: int, *arguments: Any) -> None:
            if step == 3:
                raise StopTraining

    assert run(events=[Stopping()]).statistics.steps == 4


def test_what_is_no_metric_is_refused() -> None:
    with pytest.raises(TrainingError, match="objects of TestMetric"):
        run(metrics=[TestAccuracy])
