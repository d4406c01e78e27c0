"""Accuracy on the test set."""

from __future__ import annotations

from deep500.training.metrics._accuracy import AccuracyMetric
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["TestAccuracy"]


class TestAccuracy(AccuracyMetric):
    """Right classifications in per cent of all test samples, 0 to 100, in the last complete test.

    It is counted over the samples, not averaged over minibatches. A tie of the highest scores and a NaN among the
    scores are wrong.
    """

    not_counted = (
        "Test accuracy was not counted: no test was completed, or the trainer does not know which output holds the "
        "class scores (network_output) and that labels are class numbers (the data set's classes)."
    )

    def sampler(self, runner: Trainer) -> Sampler | None:
        """Return the trainer's validation sampler."""
        return runner.validation_sampler

    def accuracy(self, statistics: TrainingStatistics) -> float | None:
        """Return the accuracy of the last complete test."""
        return statistics.test_accuracy
