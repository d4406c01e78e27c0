"""A limit of the time that a training takes in all."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from deep500.core.stateful import State
from deep500.measure import clock
from deep500.training.hyperparameters import positive
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent, StopTraining

__all__ = ["TimeLimitEvent"]

_logger = logging.getLogger(__name__)


class TimeLimitEvent(RunnerEvent):
    """Stops the training when it has taken so long by the clock on the wall, tests included.

    It is looked at after each step and each minibatch of a test. A training that goes on from a checkpoint has what is
    left. (The budget ``run_loop(time_limit_s=...)`` counts the training alone, and tests in the end.)

    Attributes:
        limit_s: The limit in seconds.
    """

    def __init__(self, limit_s: float) -> None:
        """Set the limit.

        Args:
            limit_s: Seconds, above 0.

        Raises:
            TrainingError: It is no such number.
        """
        self.limit_s = positive("limit_s", limit_s)
        self._start_ns: int | None = None
        self._earlier_s = 0.0

    @property
    def elapsed_s(self) -> float:
        """Seconds that the training has taken so far."""
        running_ns = 0 if self._start_ns is None else clock.now_ns() - self._start_ns
        return self._earlier_s + running_ns * 1e-9

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Start the clock."""
        self._earlier_s, self._start_ns = 0.0, clock.now_ns()

    def after_step(
        self, step: int, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any], loss: Any
    ) -> None:
        """Stop when the time is over."""
        self._look(training_stats)

    def after_test_batch(self, runner: Trainer, training_stats: TrainingStatistics, outputs: Mapping[str, Any]) -> None:
        """Stop when the time is over."""
        self._look(training_stats)

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Stop the clock."""
        self._earlier_s, self._start_ns = self.elapsed_s, None

    def state(self) -> State:
        """Return a snapshot: the seconds so far."""
        return {"elapsed_s": self.elapsed_s}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self._earlier_s, self._start_ns = float(state["elapsed_s"]), clock.now_ns()

    def _look(self, stats: TrainingStatistics) -> None:
        if self.elapsed_s >= self.limit_s:
            _logger.info("The training is stopped after step %d: %g s are over.", stats.steps, self.limit_s)
            raise StopTraining
