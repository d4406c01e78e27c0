"""Loss on the test set."""

from __future__ import annotations

from typing import Any

from deep500.core.errors import TrainingError
from deep500.measure.metric import Direction, MetricKind, TestMetric
from deep500.training.statistics import TrainingStatistics

__all__ = ["TestLoss"]


class TestLoss(TestMetric):
    """Mean loss a sample in the last complete test: of a regression, its mean squared error.

    It is that of the samples, not the mean of the minibatches' means, so that the size of a minibatch does not matter.

    Example:
        >>> from deep500.training.statistics import EpochRecord, PassRecord
        >>> statistics = TrainingStatistics(1, 4, 4, epochs=[EpochRecord(0, test=PassRecord(1, 4, 0.1, loss=0.25))])
        >>> TestLoss().measure(None, statistics)
        0.25
    """

    direction = Direction.LOWER
    kind = MetricKind.SCORE

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        """Return the loss.

        Args:
            inputs: Not used.
            outputs: The training's ``TrainingStatistics``.
            reference_outputs: Not used.

        Raises:
            TrainingError: These are no statistics, or no test was completed.
        """
        name = type(self).__name__
        if not isinstance(outputs, TrainingStatistics):
            raise TrainingError(f"{name} is measured from TrainingStatistics; received {outputs!r}.")
        tests = [evaluation.result for evaluation in outputs.all_evaluations]
        losses = [test.loss for test in tests if test.complete and test.loss is not None]
        if not losses:
            raise TrainingError(
                f"{name} was not measured: no test was completed. Give the trainer a validation sampler."
            )
        return losses[-1]
