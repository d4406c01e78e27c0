"""Smaller at given counts."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.training.hyperparameters import finite
from deep500.training.schedule import Schedule

__all__ = ["StepListSchedule"]


@dataclass(frozen=True)
class StepListSchedule(Schedule):
    r"""Multiplied by a factor at each of some given counts.

    .. math::
        v_t = v_0 \prod_{i:\, s_i \le t} \gamma_i

    Attributes:
        milestones: The counts :math:`s_i`, from 1, in rising order.
        factor: The factor :math:`\gamma`, or one for each milestone.

    Example:
        >>> [StepListSchedule([2, 4], 0.1, initial=1.0)(t) for t in range(5)]
        [1.0, 1.0, 0.1, 0.1, 0.01...]

    Source: K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, section 4.2; PyTorch,
    ``torch.optim.lr_scheduler.MultiStepLR``.
    """

    milestones: Sequence[int]
    factor: float | Sequence[float] = 0.1

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        milestones: Any = self.milestones
        if not isinstance(milestones, (list, tuple)):
            raise TrainingError(
                f"milestones was given as {shown(milestones)}; accepted are lists of steps or epochs, such as [30, 60]."
            )
        counts = tuple(check_count("A milestone", one, least=1, error=TrainingError) for one in milestones)
        if list(counts) != sorted(set(counts)):
            raise TrainingError(f"milestones was given as {shown(milestones)}; accepted are numbers in rising order.")
        given = list(self.factor) if isinstance(self.factor, (list, tuple)) else [self.factor] * len(counts)
        if len(given) != len(counts):
            raise TrainingError(f"{len(given)} factors were given for {len(counts)} milestones; accepted is one each.")
        factors = tuple(finite("A factor", factor) for factor in given)
        self._set(milestones=counts, factor=factors)

    def value(self, count: int) -> float:
        """Return the value at a count from 0."""
        value = self.start
        assert isinstance(self.factor, tuple)
        for factor in self.factor[: bisect.bisect_right(self.milestones, count)]:
            value *= factor
        return value
