"""Exponential decay."""

from __future__ import annotations

from dataclasses import dataclass

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.training.hyperparameters import finite
from deep500.training.schedule import Schedule

__all__ = ["ExponentialSchedule"]


@dataclass(frozen=True)
class ExponentialSchedule(Schedule):
    r"""Multiplied by a factor at regular distances.

    .. math::
        v_t = v_0 \, \gamma^{\lfloor t / n \rfloor}

    Attributes:
        factor: The factor :math:`\gamma`.
        every: Number of counts :math:`n` between two multiplications.

    Example:
        >>> [ExponentialSchedule(0.5, initial=1.0)(t) for t in range(4)]
        [1.0, 0.5, 0.25, 0.125]

    Source: PyTorch, ``torch.optim.lr_scheduler.ExponentialLR`` (``every=1``) and ``StepLR``.
    """

    factor: float = 0.95
    every: int = 1

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        self._set(factor=finite("factor", self.factor))
        check_count("every", self.every, least=1, error=TrainingError)

    def value(self, count: int) -> float:
        """Return the value at a count from 0."""
        return float(self.start * self.factor ** (count // self.every))
