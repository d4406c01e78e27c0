"""A number that is watched over a training: a metric of its statistics, and which way is better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deep500.core.errors import TrainingError, near_miss
from deep500.core.texts import shown
from deep500.training.statistics import Evaluation, TrainingStatistics

__all__ = ["METRICS", "Watched", "new_evaluation"]

#: What can be watched by name, and which way is better.
METRICS = {
    "test_accuracy": "max",
    "test_loss": "min",
    "training_accuracy": "max",
    "training_loss": "min",
}


class Watched:
    """A metric: one of a test, or of an epoch.

    Attributes:
        name: Its name.
        mode: ``"max"`` when more is better, else ``"min"``.
        is_of_test: Whether a test gives it, and not the end of an epoch.
        needs_training_accuracy: Whether the training accuracy must be counted.
    """

    def __init__(self, metric: str | Callable[[TrainingStatistics], float | None], mode: str | None) -> None:
        """Set the metric.

        Args:
            metric: A key of :data:`METRICS`, or a function of the statistics that is called after each epoch.
            mode: ``"max"`` or ``"min"``; of a metric by name its own by default.

        Raises:
            TrainingError: There is no such metric, or the mode is none, or is missing.
        """
        if not callable(metric) and metric not in METRICS:
            raise TrainingError(
                f"A metric was given as {shown(metric)}.{near_miss(metric, METRICS)} Accepted are "
                f"{', '.join(METRICS)}, and functions of the statistics."
            )
        self.name = metric if isinstance(metric, str) else str(getattr(metric, "__name__", "the metric"))
        self._function = metric if callable(metric) else None
        mode = METRICS.get(self.name) if mode is None and self._function is None else mode
        if mode not in ("min", "max"):
            raise TrainingError(f"mode was given as {shown(mode)}; accepted are 'min' and 'max'.")
        self.mode = mode
        self.is_of_test = self._function is None and self.name.startswith("test_")
        self.needs_training_accuracy = self._function is None and self.name == "training_accuracy"

    def check(self, runner: Any) -> None:
        """Check, before a training, that it will give the metric.

        Raises:
            TrainingError: It has no test set, or accuracy cannot be counted.
        """
        if self.is_of_test and runner.validation_sampler is None:
            raise TrainingError(f"{self.name} is watched, and the trainer has no validation sampler to test on.")
        if self._function is None and self.name.endswith("accuracy"):
            sampler = runner.validation_sampler if self.is_of_test else runner.train_sampler
            why = runner.why_no_accuracy(sampler)
            if why is not None:
                raise TrainingError(f"{self.name} is watched, and no accuracy is counted: {why}.")

    def of_test(self, evaluation: Evaluation) -> float | None:
        """Return the value that a test gives."""
        result = evaluation.result
        return result.accuracy_percent if self.name == "test_accuracy" else result.loss

    def of_epoch(self, stats: TrainingStatistics) -> float | None:
        """Return the value at the end of an epoch."""
        if self._function is not None:
            value = self._function(stats)
            return None if value is None else float(value)
        record = stats.epochs[-1].training
        if record is None:
            return None
        return record.accuracy_percent if self.name == "training_accuracy" else record.loss

    def is_better(self, value: float, than: float, by: float = 0.0) -> bool:
        """Whether a value is better than another by more than so much; NaN is not."""
        return value > than + by if self.mode == "max" else value < than - by


def new_evaluation(stats: TrainingStatistics) -> Evaluation | None:
    """Return the test that has just ended; ``None`` for one before the training, or on a third set in the end."""
    if stats.final_test is not None:
        return None
    last = stats.all_evaluations[-1:]
    return last[0] if last and last[0].epoch >= 0 else None
