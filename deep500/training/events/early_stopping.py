"""Ending a training that gets no better."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.stateful import State
from deep500.training.events._watched import Watched, new_evaluation
from deep500.training.hyperparameters import flag, non_negative
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent, StopTraining

__all__ = ["EarlyStoppingEvent"]

_logger = logging.getLogger(__name__)


class EarlyStoppingEvent(RunnerEvent):
    """Stops the training when a metric has not become better for so many tests (or epochs) in a row.

    A metric of a test is looked at after each test, those between two steps included; that before the training and that
    on a third set are not. A metric of the training is looked at after each epoch. NaN is never better.

    Attributes:
        best: The best value; ``None`` before the first.
        best_step: Number of steps that were done then.
        waited: Number of tests (or epochs) since then.
        stopped: Whether it has stopped the training.

    Source: L. Prechelt, "Early Stopping - But When?", 1998: the criterion UP with strips of one test, against the best.
    """

    def __init__(
        self,
        metric: str | Callable[[TrainingStatistics], float | None] = "test_loss",
        patience: int = 3,
        minimum_change: float = 0.0,
        mode: str | None = None,
        restore_best: bool = False,
    ) -> None:
        """Set what is watched, and for how long.

        Args:
            metric: ``"test_loss"``, ``"test_accuracy"``, ``"training_loss"``, ``"training_accuracy"``, or a function of
                the statistics that is called after each epoch.
            patience: How many tests in a row may bring nothing better; the next one stops.
            minimum_change: What is better by no more than this is not better; in the metric's unit.
            mode: ``"min"`` or ``"max"``; needed for a function only.
            restore_best: Whether the parameters (and statistics such as BatchNormalization's) of the best test are put
                back in the end. They are copied to the host each time that the metric becomes better.

        Raises:
            TrainingError: An argument is not accepted.
        """
        self._watched = Watched(metric, mode)
        self.needs_training_accuracy = self._watched.needs_training_accuracy
        self.patience = check_count("patience", patience, least=1, error=TrainingError)
        self.minimum_change = non_negative("minimum_change", minimum_change)
        self.restore_best = flag("restore_best", restore_best)
        self._reset()

    def _reset(self) -> None:
        self.best: float | None = None
        self.best_step: int | None = None
        self.waited = 0
        self.stopped = False
        self._tensors: dict[str, Any] = {}

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Start anew.

        Raises:
            TrainingError: The training does not give the metric.
        """
        self._watched.check(runner)
        self._reset()

    def after_test_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Look at the metric of a test; between two steps, stop at once."""
        evaluation = new_evaluation(training_stats) if self._watched.is_of_test else None
        if evaluation is not None:
            self._look(self._watched.of_test(evaluation), runner, training_stats)
            if self.stopped and training_stats.epochs[-1].training is None:
                raise StopTraining

    def after_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Look at the metric of an epoch; stop, when the epoch is in the statistics."""
        if not self._watched.is_of_test:
            self._look(self._watched.of_epoch(training_stats), runner, training_stats)
        if self.stopped:
            raise StopTraining

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Put the best parameters back, when that was asked for and the training ended as planned."""
        if training_stats.complete:
            for name, value in self._tensors.items():
                runner.executor.network.feed_tensor(name, value)
        self._tensors = {}

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        names = ("best", "best_step", "waited", "stopped")
        return {**{name: getattr(self, name) for name in names}, "tensors": dict(self._tensors)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        for name in ("best", "best_step", "waited", "stopped"):
            setattr(self, name, state[name])
        self._tensors = dict(state["tensors"])

    def _look(self, value: float | None, runner: Trainer, stats: TrainingStatistics) -> None:
        is_first = self.best is None and value is not None and value == value
        if value is not None and (
            is_first or (self.best is not None and self._watched.is_better(value, self.best, self.minimum_change))
        ):
            self.best, self.best_step, self.waited = value, stats.steps, 0
            if self.restore_best:
                network = runner.executor.network
                names = [*network.parameters, *network.states]
                self._tensors = dict(zip(names, network.fetch_tensors(names)))
            return
        self.waited += 1
        if self.waited > self.patience and not self.stopped:
            self.stopped = True
            best = "no value" if self.best is None else f"{self.best:.6g}, after step {self.best_step}"
            _logger.info(
                "The training is stopped after step %d: %s was better than %s for %d times.",
                stats.steps, f"no {self._watched.name}", best, self.waited,
            )  # fmt: skip
