"""The 1-cycle policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.training.hyperparameters import fraction, positive
from deep500.training.schedule import Schedule

__all__ = ["OneCycleSchedule"]


@dataclass(frozen=True)
class OneCycleSchedule(Schedule):
    r"""Up to the peak and down again, to far below where it began.

    The peak :math:`v` is ``initial``, by default what the optimizer was made with. With :math:`T` counts, and a share
    :math:`p` of them for the way up, the value goes from :math:`v / d` at count 0 to :math:`v` at count
    :math:`p T - 1`, and from there to :math:`v / (d f)` at the last count, :math:`T - 1`; afterwards it stays. Each
    way from :math:`a` to :math:`b`, with :math:`s` from 0 to 1, is half a cosine wave, :math:`b + (a - b) (1 + \cos
    \pi s) / 2`, or a straight line.

    Attributes:
        rising_share: The share :math:`p`, from 0 to below 1.
        start_divisor: How many times smaller than the peak the first value is, :math:`d`.
        end_divisor: How many times smaller than the first value the last one is, :math:`f`.
        shape: ``"cosine"`` or ``"linear"``.

    Example:
        >>> schedule = OneCycleSchedule(initial=1.0, total=10)
        >>> [round(schedule(t), 2) for t in range(10)]
        [0.04, 0.52, 1.0, 0.95, 0.81, 0.61, 0.39, 0.19, 0.05, 0.0]

    Source: L. N. Smith, N. Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning
    Rates", 2018; counts and defaults as in PyTorch's ``torch.optim.lr_scheduler.OneCycleLR``.
    """

    needs_total: ClassVar[bool] = True

    rising_share: float = 0.3
    start_divisor: float = 25.0
    end_divisor: float = 1e4
    shape: str = "cosine"

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        self._set(rising_share=fraction("rising_share", self.rising_share))
        for name in ("start_divisor", "end_divisor"):
            self._set(**{name: positive(name, getattr(self, name))})
        if self.shape not in ("cosine", "linear"):
            raise TrainingError(f"shape was given as {shown(self.shape)}; accepted are 'cosine' and 'linear'.")

    def value(self, count: int) -> float:
        """Return the value at a count from 0."""
        first = self.start / self.start_divisor
        top, end = self.rising_share * self.length - 1.0, self.length - 1.0
        if count <= top:
            return self._between(first, self.start, count / top if top else 1.0)
        top = max(top, 0.0)
        share = min((count - top) / (end - top), 1.0) if end > top else 1.0
        return self._between(self.start, first / self.end_divisor, share)

    def _between(self, first: float, last: float, share: float) -> float:
        if self.shape == "linear":
            return first + (last - first) * share
        return last + 0.5 * (first - last) * (1.0 + math.cos(math.pi * share))
