"""The time to a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deep500.core.errors import TrainingError
from deep500.core.stateful import State
from deep500.core.texts import shown
from deep500.training.events._watched import Watched, new_evaluation
from deep500.training.hyperparameters import finite, flag
from deep500.training.statistics import Evaluation, TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent, StopTraining

__all__ = ["TargetAccuracyEvent"]


class TargetAccuracyEvent(RunnerEvent):
    """Notes when a test reaches a target for the first time, and stops the training then.

    The time is that of the training alone: tests take none of it. It is known as exactly as tests are frequent;
    ``run_loop(..., evaluate_every_steps=n)`` makes them so.

    Attributes:
        reached: Whether the target was reached.
        training_s: Seconds of training until then; ``None`` before, as the following ones.
        step: Number of steps until then.
        samples: Number of samples that they trained on.
        epoch: Number of the epoch in which it was, from 0.
        value: What the test gave.

    Source: C. Coleman et al., "DAWNBench: An End-to-End Deep Learning Benchmark and Competition", 2017 (time to
    accuracy).
    """

    _FIELDS = ("training_s", "step", "samples", "epoch", "value")

    def __init__(
        self, target: float, metric: str = "test_accuracy", mode: str | None = None, stop: bool = True
    ) -> None:
        """Set the target.

        Args:
            target: The value that is enough; an accuracy in per cent.
            metric: ``"test_accuracy"`` or ``"test_loss"``.
            mode: ``"max"`` when more is better, ``"min"`` when less is; by default the metric's own.
            stop: Whether the training ends there.

        Raises:
            TrainingError: An argument is not accepted.
        """
        self._watched = Watched(metric, mode)
        if not self._watched.is_of_test:
            raise TrainingError(f"metric was given as {shown(metric)}; accepted are 'test_accuracy' and 'test_loss'.")
        self.target = finite("target", target)
        self.stop = flag("stop", stop)
        self._reset()

    def _reset(self) -> None:
        self.training_s: float | None = None
        self.step: int | None = None
        self.samples: int | None = None
        self.epoch: int | None = None
        self.value: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the target was reached."""
        return self.step is not None

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Start anew.

        Raises:
            TrainingError: The training does not give the metric.
        """
        self._watched.check(runner)
        self._reset()

    def after_test_set(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Compare; between two steps, stop at once."""
        evaluation = new_evaluation(training_stats)
        if evaluation is None or self.reached:
            return
        value = self._watched.of_test(evaluation)
        if value is not None and (value == self.target or self._watched.is_better(value, self.target)):
            self._note(evaluation, value, training_stats)
            if self.stop and training_stats.epochs[-1].training is None:
                raise StopTraining

    def after_epoch(self, epoch: int, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Stop, when the epoch is in the statistics."""
        if self.reached and self.stop:
            raise StopTraining

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        return {name: getattr(self, name) for name in self._FIELDS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        for name in self._FIELDS:
            setattr(self, name, state[name])

    def _note(self, evaluation: Evaluation, value: float, stats: TrainingStatistics) -> None:
        self.training_s, self.step, self.epoch = evaluation.training_s, evaluation.step, evaluation.epoch
        self.samples, self.value = stats.samples, value
