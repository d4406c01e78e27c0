"""Accuracy on the test set."""

from __future__ import annotations

from typing import Any

from deep500.core.errors import TrainingError
from deep500.measure.metric import Direction, MetricKind, TestMetric
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent

__all__ = ["TestAccuracy"]


class TestAccuracy(RunnerEvent, TestMetric):
    """Right classifications in per cent of all test samples, 0 to 100, in the last complete test.

    It is counted over the samples, not averaged over minibatches. A tie of the highest scores and a NaN among the
    scores are wrong.
    """

    unit = "%"
    direction = Direction.HIGHER
    kind = MetricKind.SCORE

    @property
    def requires_inputs(self) -> bool:
        """False: it is measured from the statistics."""
        return False

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Check that accuracy can be counted.

        Raises:
            TrainingError: It cannot, for the reason given.
        """
        reason = runner.why_no_accuracy(runner.validation_sampler)
        if reason:
            raise TrainingError(f"TestAccuracy cannot be measured: {reason}.")

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the accuracy.

        Args:
            inputs: Not used.
            outputs: The training's ``TrainingStatistics``.
            reference_outputs: Not used.

        Raises:
            TrainingError: These are no statistics, or no test was completed in which accuracy was counted.
        """
        if not isinstance(outputs, TrainingStatistics):
            raise TrainingError(f"TestAccuracy is measured from TrainingStatistics; received {outputs!r}.")
        if outputs.test_accuracy is None:
            raise TrainingError(
                "Test accuracy was not counted: no test was completed, or the trainer does not know which output "
                "holds the class scores (network_output) and that labels are class numbers (the data set's classes)."
            )
        return outputs.test_accuracy
