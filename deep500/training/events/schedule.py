"""Hyperparameters that change during a training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deep500.core.errors import TrainingError, near_miss
from deep500.core.stateful import State
from deep500.core.texts import shown
from deep500.training.hyperparameters import finite
from deep500.training.schedule import Schedule, ScheduleFunction, as_schedule
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent

__all__ = ["ScheduleEvent"]


class ScheduleEvent(RunnerEvent):
    """Sets one of the optimizer's hyperparameters as a schedule says, before each step or epoch.

    A schedule that was not told what to start from starts from the optimizer's own value; one that was not told how
    long it is lasts as long as the training. A parameter group's multiplier of the hyperparameter goes on to hold; a
    value of its own stays as it is. When the training has ended, the optimizer has the value from before again.

    Attributes:
        hyperparameter: Its name.
        schedule: The schedule; in a training, completed.
        per: What is counted, ``"step"`` or ``"epoch"``.
        value: What was set last; ``None`` before the first step.
    """

    may_stop = False

    def __init__(self, hyperparameter: str = "learning_rate", schedule: Any = "constant", per: str = "step") -> None:
        """Set what is changed, and how.

        Args:
            hyperparameter: One of the optimizer's ``hyperparameter_names``.
            schedule: A schedule, its name, a dict of its name and arguments, or any function from the number of the
                step or epoch, from 0, to the value.
            per: ``"step"`` or ``"epoch"``.

        Raises:
            TrainingError: An argument is not accepted.
            UnknownNameError: There is no schedule of this name.
        """
        if not isinstance(hyperparameter, str):
            raise TrainingError(f"A hyperparameter was given as {shown(hyperparameter)}; accepted are names.")
        if per not in ("step", "epoch"):
            raise TrainingError(f"per was given as {shown(per)}; accepted are 'step' and 'epoch'.")
        self.hyperparameter = hyperparameter
        self.schedule: ScheduleFunction = as_schedule(schedule)
        self.per = per
        self.value: float | None = None
        self._given = self.schedule  # as it was before it was completed
        self._before: float | None = None
        self._total: int | None = None
        self._count: int | None = None

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Complete the schedule.

        Raises:
            TrainingError: The optimizer has no such hyperparameter, it is no number, or the schedule needs a length
                that the training has not.
        """
        known = runner.optimizer.hyperparameter_names
        kind = type(runner.optimizer).__name__
        if self.hyperparameter not in known:
            raise TrainingError(
                f"{kind} has no hyperparameter {self.hyperparameter!r} to schedule."
                f"{near_miss(self.hyperparameter, known)} It has: {', '.join(known) or 'none'}."
            )
        before = getattr(runner.optimizer, self.hyperparameter)
        is_number = isinstance(before, (int, float)) and not isinstance(before, bool)
        if not is_number and (not isinstance(self._given, Schedule) or self._given.initial is not None):
            before = 0.0 if before is None else before  # the schedule does not start from it
        elif not is_number:
            raise TrainingError(
                f"{kind} was made with {self.hyperparameter}={shown(before)}, from which a schedule cannot start. Give "
                f"the optimizer a number, or the schedule initial=..."
            )
        self._before = getattr(runner.optimizer, self.hyperparameter)
        self._total = training_stats.steps_planned if self.per == "step" else training_stats.epochs_planned
        self._complete(float(before))
        self._count = self.value = None

    def before_step(
        self, step: int, runner: Trainer, training_stats: TrainingStatistics, inputs: Mapping[str, Any]
    ) -> None:
        """Set the hyperparameter.

        Raises:
            TrainingError: The schedule gives no finite number, or one that the optimizer does not accept.
        """
        count = step if self.per == "step" else training_stats.epochs_done
        if count == self._count:
            return
        value = finite(f"The schedule's {self.hyperparameter} of {self.per} {count}", self.schedule(count))
        if value != self.value:
            setattr(runner.optimizer, self.hyperparameter, value)
        self._count, self.value = count, value

    def after_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Give the optimizer the value from before."""
        if self._count is not None:
            setattr(runner.optimizer, self.hyperparameter, self._before)
        self._count = None

    def state(self) -> State:
        """Return a snapshot: the value that the schedule starts from."""
        return {"hyperparameter": self.hyperparameter, "before": self._before}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot. The optimizer's value is that of the middle of the schedule then."""
        self._before = state["before"]
        self._complete(0.0 if self._before is None else float(self._before))

    def _complete(self, initial: float) -> None:
        if isinstance(self._given, Schedule):
            self.schedule = self._given.completed(initial, self._total)
