"""Accuracy on the training set."""

from __future__ import annotations

from deep500.training.metrics._accuracy import AccuracyMetric
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["TrainingAccuracy"]


class TrainingAccuracy(AccuracyMetric):
    """Right classifications in per cent of the training samples, 0 to 100, in the last complete epoch.

    Each sample counts with the parameters that its own minibatch was run with, before their update. Counting costs a
    copy of each step's outputs to the host, so it is done only when this metric is among the trainer's events.
    """

    needs_training_accuracy = True
    not_counted = (
        "Training accuracy was not counted in a complete epoch. Give the metric to the trainer as an event: "
        "run_loop(epochs, [metric])."
    )

    def sampler(self, runner: Trainer) -> Sampler | None:
        """Return the trainer's training sampler."""
        return runner.train_sampler

    def accuracy(self, statistics: TrainingStatistics) -> float | None:
        """Return the accuracy of the last complete epoch."""
        return statistics.train_accuracy
