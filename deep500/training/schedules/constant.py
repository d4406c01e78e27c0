"""A value that stays."""

from __future__ import annotations

from dataclasses import dataclass

from deep500.training.schedule import Schedule

__all__ = ["ConstantSchedule"]


@dataclass(frozen=True)
class ConstantSchedule(Schedule):
    r"""The same value at every count, after the warm-up: :math:`v_t = v_0`.

    Example:
        >>> [ConstantSchedule(initial=0.4, warm_up_steps=3)(t) for t in range(5)]
        [0.1, 0.2, 0.3..., 0.4, 0.4]
    """

    def value(self, count: int) -> float:
        """Return the value."""
        return self.start
