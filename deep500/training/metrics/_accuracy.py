"""What the accuracies of training and test have in common."""

from __future__ import annotations

import abc
from typing import Any

from deep500.core.errors import TrainingError
from deep500.measure.metric import Direction, MetricKind, TestMetric
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent

__all__ = ["AccuracyMetric"]


class AccuracyMetric(RunnerEvent, TestMetric):
    """A share of right classifications, in per cent, that the trainer counts and the statistics keep.

    Attributes:
        not_counted: What to say when the statistics do not have it.
    """

    unit = "%"
    direction = Direction.HIGHER
    kind = MetricKind.SCORE
    not_counted: str

    @abc.abstractmethod
    def sampler(self, runner: Trainer) -> Sampler | None:
        """Return the sampler whose samples are classified."""

    @abc.abstractmethod
    def accuracy(self, statistics: TrainingStatistics) -> float | None:
        """Return the accuracy, ``None`` when it was not counted."""

    @property
    def requires_inputs(self) -> bool:
        """False: it is measured from the statistics."""
        return False

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Check that accuracy can be counted.

        Raises:
            TrainingError: It cannot, for the reason given.
        """
        reason = runner.why_no_accuracy(self.sampler(runner))
        if reason:
            raise TrainingError(f"{type(self).__name__} cannot be measured: {reason}.")

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the accuracy.

        Args:
            inputs: Not used.
            outputs: The training's ``TrainingStatistics``.
            reference_outputs: Not used.

        Raises:
            TrainingError: These are no statistics, or accuracy was not counted.
        """
        if not isinstance(outputs, TrainingStatistics):
            raise TrainingError(f"{type(self).__name__} is measured from TrainingStatistics; received {outputs!r}.")
        accuracy = self.accuracy(outputs)
        if accuracy is None:
            raise TrainingError(self.not_counted)
        return accuracy
