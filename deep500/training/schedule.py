"""The contract of a schedule: what a hyperparameter is at each step or epoch."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.training.hyperparameters import finite

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Schedule", "ScheduleFunction", "as_schedule", "warmed_up"]

#: The value of a hyperparameter by the number of the step or epoch, from 0.
ScheduleFunction = Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class Schedule(abc.ABC):
    """The value of a hyperparameter as a function of a count: of steps, or of epochs.

    What is not given is completed when a training begins: the value that it starts from is the one that the optimizer
    was made with, and the length that of the training. A schedule is never changed; :meth:`completed` returns another.

    Attributes:
        initial: The value that the schedule starts from; by default the optimizer's.
        total: Number of counts after which it is over; by default the training's. Of use to schedules that have an end.
        warm_up_steps: During so many counts the value grows linearly to the schedule's first one, which begins then.
            They count as the schedule does: steps, or epochs.
        needs_total: Whether its formula has the length in it.
    """

    needs_total: ClassVar[bool] = False

    initial: float | None = None
    total: int | None = None
    warm_up_steps: int = 0

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            TrainingError: One is not accepted.
        """
        if self.initial is not None:
            self._set(initial=finite("initial", self.initial))
        if self.total is not None:
            self._set(total=check_count("total", self.total, least=0, error=TrainingError))
        self._set(warm_up_steps=check_count("warm_up_steps", self.warm_up_steps, least=0, error=TrainingError))

    def __call__(self, count: int) -> float:
        """Return the value at a count from 0.

        Raises:
            TrainingError: What the schedule starts from, or its length where it needs one, is not known.
        """
        if count < self.warm_up_steps:
            return warmed_up(self.value(0), count, self.warm_up_steps)
        return self.value(count - self.warm_up_steps)

    @abc.abstractmethod
    def value(self, count: int) -> float:
        """Return the value at a count from 0, at which the warm-up is over."""

    def completed(self, initial: float, total: int | None) -> Self:
        """Return the schedule with what it was not given.

        Args:
            initial: The value that the hyperparameter has.
            total: Number of counts of the training; ``None`` where the budget does not say.

        Raises:
            TrainingError: The schedule needs a length and there is none, or the warm-up is longer.
        """
        made = dataclasses.replace(
            self,
            initial=initial if self.initial is None else self.initial,
            total=total if self.total is None else self.total,
        )
        if made.needs_total:
            if made.total is None:
                raise TrainingError(
                    f"{type(self).__name__} needs to know how long the training is, and a budget of seconds does not "
                    f"say. Give it total=..., or the training a budget of epochs, steps or samples."
                )
            if 0 < made.total <= made.warm_up_steps:
                raise TrainingError(
                    f"{type(self).__name__} has warm_up_steps={made.warm_up_steps} of {made.total} in all, which "
                    f"leaves nothing; accepted are fewer."
                )
        return made

    @property
    def start(self) -> float:
        """The value that it starts from.

        Raises:
            TrainingError: It is not known.
        """
        if self.initial is None:
            raise TrainingError(f"{type(self).__name__} was given no initial=..., and is not used in a training.")
        return self.initial

    @property
    def length(self) -> int:
        """Number of counts after the warm-up.

        Raises:
            TrainingError: It is not known.
        """
        if self.total is None:
            raise TrainingError(f"{type(self).__name__} was given no total=..., and is not used in a training.")
        return max(self.total - self.warm_up_steps, 1)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def warmed_up(first: float, count: int, steps: int, start: float | None = None) -> float:
    """Return a value on the straight line from a share of a schedule's first value to that value.

    Args:
        first: The schedule's first value.
        count: The count, below ``steps``.
        steps: Number of counts of the line.
        start: The share at count 0; by default ``1 / (steps + 1)``, so that all increments are the same.
    """
    if start is None:
        return first * (count + 1) / (steps + 1)
    return first * (start + (1.0 - start) * count / steps)


def as_schedule(value: Any) -> ScheduleFunction:
    """Return a schedule from what stands for one.

    Args:
        value: A schedule, any function of the count, a schedule's name, a pair ``(name, arguments)`` or a dict of name
            and arguments, such as ``dict(name="cosine", warm_up_steps=100)``.

    Raises:
        TrainingError: It is none of these, or the schedule takes no such arguments.
        UnknownNameError: There is no schedule of this name.
    """
    from deep500.training.catalogue import SCHEDULES

    name, arguments = value, {}
    if isinstance(value, Mapping) and "name" in value:
        arguments = dict(value)
        name = arguments.pop("name")
    elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
        name, arguments = value[0], dict(value[1])
    found = SCHEDULES.get(name) if isinstance(name, str) else name
    if isinstance(found, type):
        try:
            found = found(**arguments)
        except TypeError as error:
            fields = [field.name for field in dataclasses.fields(found)] if dataclasses.is_dataclass(found) else []
            raise TrainingError(
                f"The arguments of the schedule {found.__name__} do not fit: {error}. It takes: {', '.join(fields)}."
            ) from error
    if not callable(found):
        raise TrainingError(
            f"A schedule was given as {shown(value)}; accepted are schedules (see: deep500 list schedules), their "
            f"names, and functions of the number of the step or epoch."
        )
    made: ScheduleFunction = found
    return made
