"""Accuracy on the training set."""

from __future__ import annotations

from typing import Any

from deep500.core.errors import TrainingError
from deep500.measure.metric import Direction, MetricKind, TestMetric
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent

__all__ = ["TrainingAccuracy"]


class TrainingAccuracy(RunnerEvent, TestMetric):
    """Right classifications in per cent of the training samples, 0 to 100, in the last complete epoch.

    Each sample counts with the parameters that its own minibatch was run with, before their update. Counting costs a
    copy of each step's outputs to the host, so it is done only when this metric is among the trainer's events.
    """

    unit = "%"
    direction = Direction.HIGHER
    kind = MetricKind.SCORE
    needs_training_accuracy = True

    @property
    def requires_inputs(self) -> bool:
        """False: it is measured from the statistics."""
        return False

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Check that accuracy can be counted.

        Raises:
            TrainingError: It cannot, for the reason given.
        """
        reason = runner.why_no_accuracy(runner.train_sampler)
        if reason:
            raise TrainingError(f"TrainingAccuracy cannot be measured: {reason}.")

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the accuracy.

        Args:
            inputs: Not used.
            outputs: The training's ``TrainingStatistics``.
            reference_outputs: Not used.

        Raises:
            TrainingError: These are no statistics, or training accuracy was not counted.
        """
        if not isinstance(outputs, TrainingStatistics):
            raise TrainingError(f"TrainingAccuracy is measured from TrainingStatistics; received {outputs!r}.")
        if outputs.train_accuracy is None:
            raise TrainingError(
                "Training accuracy was not counted in a complete epoch. Give the metric to the trainer as an event: "
                "run_loop(epochs, [metric])."
            )
        return outputs.train_accuracy
