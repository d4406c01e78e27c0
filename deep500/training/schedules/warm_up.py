"""A linear warm-up before another schedule."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.training.hyperparameters import finite
from deep500.training.schedule import Schedule, as_schedule, warmed_up

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["WarmUpSchedule"]


@dataclass(frozen=True)
class WarmUpSchedule(Schedule):
    r"""Grows linearly to the first value of another schedule, which then begins.

    .. math::
        v_t = w_0 \left(s + (1 - s) \frac{t}{n}\right) \;\text{for } t < n, \qquad v_t = w_{t - n} \;\text{from there}

    with :math:`w` the other schedule. Every schedule has the same as its own argument ``warm_up_steps``; this one
    comes before any function, and starts from any share.

    Attributes:
        schedule: The other schedule: an object, a function of the count, a name or a dict of name and arguments.
        steps: Number of counts :math:`n`.
        first_share: The share :math:`s` of the other schedule's first value; by default ``1 / (n + 1)``.

    Example:
        >>> schedule = WarmUpSchedule("exponential", 4, 0.0, initial=1.0)
        >>> [round(schedule(t), 3) for t in range(6)]
        [0.0, 0.25, 0.5, 0.75, 1.0, 0.95]

    Source: P. Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", 2017, section 2.2 (gradual
    warm-up).
    """

    schedule: Any = "constant"
    steps: int = 100
    first_share: float | None = None

    def __post_init__(self) -> None:
        """Check the fields, and make the other schedule."""
        super().__post_init__()
        self._set(steps=check_count("steps", self.steps, least=1, error=TrainingError))
        if self.first_share is not None:
            self._set(first_share=finite("first_share", self.first_share))
        other = as_schedule(self.schedule)
        if isinstance(other, Schedule) and self.initial is not None and other.initial is None:
            other = dataclasses.replace(other, initial=self.initial)
        self._set(schedule=other)

    def completed(self, initial: float, total: int | None) -> Self:
        """Return the schedule with what it was not given, as the other one is; see :meth:`Schedule.completed`."""
        made = super().completed(initial, total)
        if not isinstance(self.schedule, Schedule):
            return made
        left = made.total
        if left:
            left -= self.steps + self.warm_up_steps
            if left <= 0 and self.schedule.needs_total and self.schedule.total is None:
                raise TrainingError(
                    f"A warm-up of {self.steps} leaves nothing of {made.total} in all; accepted are fewer steps."
                )
        return dataclasses.replace(made, schedule=self.schedule.completed(made.start, left))

    def value(self, count: int) -> float:
        """Return the value at a count from 0."""
        if count < self.steps:
            return warmed_up(self.schedule(0), count, self.steps, self.first_share)
        return float(self.schedule(count - self.steps))
