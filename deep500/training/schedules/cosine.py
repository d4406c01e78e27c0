"""Cosine annealing, with or without warm restarts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.training.hyperparameters import finite
from deep500.training.schedule import Schedule

__all__ = ["CosineSchedule"]


@dataclass(frozen=True)
class CosineSchedule(Schedule):
    r"""Half a cosine wave from the first value to a last one.

    .. math::
        v_t = v_T + \tfrac12 (v_0 - v_T) \left(1 + \cos \frac{\pi t}{T}\right)

    with :math:`T` the length; afterwards the value stays. With restarts, the wave begins again after
    :math:`T_0` counts, then after :math:`T_0 \cdot m`, :math:`T_0 \cdot m^2` and so on, and no length is needed.

    Attributes:
        final: The value :math:`v_T` that it ends with.
        restart_every: Length :math:`T_0` of the first wave; ``None`` for a single one.
        restart_factor: How many times as long as the one before it, :math:`m`, each further wave is.

    Example:
        >>> schedule = CosineSchedule(initial=1.0, total=4)
        >>> [round(schedule(t), 3) for t in range(6)]
        [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]

    Source: I. Loshchilov, F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", ICLR 2017, equation 5.
    """

    final: float = 0.0
    restart_every: int | None = None
    restart_factor: int = 1

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        self._set(final=finite("final", self.final))
        if self.restart_every is not None:
            check_count("restart_every", self.restart_every, least=1, error=TrainingError)
        check_count("restart_factor", self.restart_factor, least=1, error=TrainingError)

    @property
    def needs_total(self) -> bool:  # type: ignore[override] # with restarts it does not
        """Whether its formula has the length in it."""
        return self.restart_every is None

    def value(self, count: int) -> float:
        """Return the value at a count from 0."""
        at, length = self._within(count)
        return self.final + 0.5 * (self.start - self.final) * (1.0 + math.cos(math.pi * at / length))

    def _within(self, count: int) -> tuple[int, int]:
        """Return how far into its wave a count is, and how long that is."""
        if self.restart_every is None:
            return min(count, self.length), self.length
        length = self.restart_every
        if self.restart_factor == 1:
            return count % length, length
        while count >= length:
            count -= length
            length *= self.restart_factor
        return count, length
