"""Polynomial decay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from deep500.training.hyperparameters import finite, positive
from deep500.training.schedule import Schedule

__all__ = ["PolynomialSchedule"]


@dataclass(frozen=True)
class PolynomialSchedule(Schedule):
    r"""A power of what is left of the training, down to a last value; with power 1 a straight line.

    .. math::
        v_t = v_T + (v_0 - v_T) \left(1 - \frac{t}{T}\right)^p

    with :math:`T` the length; afterwards the value stays.

    Attributes:
        power: The power :math:`p`.
        final: The value :math:`v_T` that it ends with.

    Example:
        >>> [PolynomialSchedule(initial=1.0, total=4)(t) for t in range(6)]
        [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]

    Source: the "poly" policy of Caffe; PyTorch, ``torch.optim.lr_scheduler.PolynomialLR``.
    """

    needs_total: ClassVar[bool] = True

    power: float = 1.0
    final: float = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        self._set(power=positive("power", self.power), final=finite("final", self.final))

    def value(self, count: int) -> float:
        """Return the value at a count from 0."""
        left = 1.0 - min(count, self.length) / self.length
        return float(self.final + (self.start - self.final) * left**self.power)
