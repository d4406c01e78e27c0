"""When to stop taking samples: once the interval of the median is narrow enough, or never."""

from __future__ import annotations

import bisect
import enum
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.quantiles import (
    Interval,
    IntervalRows,
    quantile_interval,
    relative_half_width,
    samples_needed,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Action", "Decision", "SequentialStop"]


class Action(str, enum.Enum):
    """What to do next."""

    CONTINUE = "continue"  #: take more samples
    CONVERGED = "converged"  #: stop: the interval is narrow enough
    NOT_CONVERGED = "not converged"  #: stop, and say so


@dataclass(frozen=True, slots=True)
class Decision:
    """What a stopping rule says after some samples.

    Attributes:
        action: What to do next.
        reason: Why, for people.
        interval: Interval of the median; ``None`` when there are too few samples.
        check_at: Number of samples at which to ask again; ``None`` when sampling stops.
    """

    action: Action
    reason: str
    interval: Interval | None
    check_at: int | None


@dataclass(frozen=True)
class SequentialStop:
    """Stops once half the width of the median's interval is a small share of the median.

    Looking at the interval often, and stopping at the first narrow one, favours intervals that are narrow by chance. So
    it is looked at only at ``minimum`` samples and then each time their number has grown by the factor ``growth``: in
    simulations, 93 to 95 % of nominal 95 % intervals then hold the median; looking after every sample, 91 to 93 %.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, section 4.2.2.

    Args:
        relative_half_width: Largest half width over the median.
        minimum: Number of samples at the first look.
        growth: Factor from one look to the next.
        maximum: Number of samples at the last look.
        confidence: Confidence of the interval.

    Raises:
        MeasurementError: The arguments contradict each other.

    Example:
        >>> stop = SequentialStop()
        >>> [n for n in range(40) if stop.should_check(n)]
        [10, 13, 17, 22, 28, 35]
        >>> stop.decide([1.0, 1.02, 0.99, 1.01, 1.0, 1.03, 0.98, 1.0, 1.01, 0.99]).action.value
        'converged'
    """

    relative_half_width: float = 0.05
    minimum: int = 10
    growth: float = 1.25
    maximum: int = 10_000
    confidence: float = 0.95
    sizes: tuple[int, ...] = field(init=False, repr=False, compare=False)  #: numbers of samples at which to look

    def __post_init__(self) -> None:
        """Check the arguments and lay out the looks."""
        needed = samples_needed(0.5, self.confidence)
        if not self.relative_half_width > 0:
            raise MeasurementError(f"The relative half width is positive; it is {self.relative_half_width!r}.")
        if not self.growth > 1:
            raise MeasurementError(f"The growth from one look to the next is above 1; it is {self.growth!r}.")
        if self.minimum < needed:
            raise MeasurementError(
                f"An interval of confidence {self.confidence:.6g} needs {needed} samples; the minimum is "
                f"{self.minimum}."
            )
        if self.maximum < self.minimum:
            raise MeasurementError(f"The maximum, {self.maximum}, is below the minimum, {self.minimum}.")
        sizes = [self.minimum]
        while sizes[-1] < self.maximum:
            sizes.append(min(self.maximum, max(sizes[-1] + 1, math.ceil(sizes[-1] * self.growth))))
        object.__setattr__(self, "sizes", tuple(sizes))

    def should_check(self, size: int) -> bool:
        """Whether to ask :meth:`decide` with this many samples."""
        place = bisect.bisect_left(self.sizes, size)
        return size > self.maximum or (place < len(self.sizes) and self.sizes[place] == size)

    def next_check(self, size: int) -> int | None:
        """Return at how many samples to look next, ``None`` when the maximum is reached."""
        place = bisect.bisect_right(self.sizes, size)
        return self.sizes[place] if place < len(self.sizes) else None

    def is_narrow(self, interval: Interval | IntervalRows) -> NDArray[np.bool_]:
        """Whether an interval, or each of many, is narrow enough."""
        return relative_half_width(interval.estimate, interval.low, interval.high) <= self.relative_half_width

    def decide(self, samples: ArrayLike, *, out_of_time: bool = False) -> Decision:
        """Say whether to take more samples.

        Args:
            samples: All samples so far; ask when :meth:`should_check` says so.
            out_of_time: No further sample can be afforded.

        Raises:
            MeasurementError: Some samples are NaN.
        """
        row = np.asarray(samples, dtype=np.float64)
        size = row.size
        following = self.next_check(size)
        if size < self.minimum:
            have = f"{size} of at least {self.minimum} samples"
            if out_of_time:
                return Decision(Action.NOT_CONVERGED, f"time is up with {have}", None, None)
            return Decision(Action.CONTINUE, have, None, following)
        interval = quantile_interval(row, 0.5, self.confidence)
        share = interval.relative_half_width
        width = f"after {size} samples, half the interval is {share:.2%} of the median"
        limit = f"{self.relative_half_width:.2%}"
        if self.is_narrow(interval):
            return Decision(Action.CONVERGED, f"{width}, at most {limit}", interval, None)
        if out_of_time:
            return Decision(Action.NOT_CONVERGED, f"time is up; {width}, above {limit}", interval, None)
        if following is None:
            return Decision(
                Action.NOT_CONVERGED, f"no more samples are allowed; {width}, above {limit}", interval, None
            )
        return Decision(Action.CONTINUE, f"{width}, above {limit}", interval, following)
