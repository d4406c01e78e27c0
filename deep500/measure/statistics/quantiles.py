"""Confidence intervals of quantiles from order statistics: exact for any continuous distribution."""

from __future__ import annotations

import bisect
import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc

from deep500.core.errors import MeasurementError
from deep500.measure.statistics._samples import check_confidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Interval",
    "IntervalRows",
    "Ranks",
    "order_statistic_ranks",
    "quantile_interval",
    "quantile_intervals",
    "samples_needed",
]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval, in the unit of the samples.

    Attributes:
        estimate: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
        confidence_requested: The confidence that was asked for.
        coverage: How often such an interval holds the true value: at least what was asked for where ``exact``, else
            what was asked for.
        exact: Whether the coverage holds for every continuous distribution; else it is an approximation, or holds
            under the assumptions of the function that made the interval.
    """

    estimate: float
    low: float
    high: float
    confidence_requested: float
    coverage: float
    exact: bool = True

    @property
    def half_width(self) -> float:
        """Half the distance of the ends."""
        return (self.high - self.low) / 2

    @property
    def relative_half_width(self) -> float:
        """The half width over the size of the estimate; infinite when that is 0 and the width is not."""
        return float(relative_half_width(self.estimate, self.low, self.high))

    def contains(self, value: float) -> bool:
        """Whether a value lies in the closed interval."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class IntervalRows:
    """The intervals of many rows of samples; see :class:`Interval`."""

    estimate: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    confidence_requested: float
    coverage: float


class Ranks(NamedTuple):
    """Which order statistics, counted from 1, are the ends of an interval, and how often it holds the quantile."""

    low: int
    high: int
    coverage: float


@functools.lru_cache(maxsize=8192)
def order_statistic_ranks(size: int, quantile: float = 0.5, confidence: float = 0.95) -> Ranks:
    r"""Return the ranks of the order statistics that enclose a quantile.

    With :math:`B \sim \mathrm{Binomial}(n, q)` the number of samples below the quantile,

    .. math:: l = \max\{r: P(B < r) \le \alpha/2\}, \quad u = \min\{r: P(B \ge r) \le \alpha/2\}, \quad
              \text{coverage} = P(l \le B < u).

    Source: W. J. Conover, "Practical Nonparametric Statistics", 3rd ed. 1999, section 3.2; T. Hoefler, R. Belli,
    "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 5 and 8.

    Args:
        size: Number of samples.
        quantile: The quantile, between 0 and 1.
        confidence: The confidence, between 0 and 1.

    Raises:
        MeasurementError: There are too few samples; the message says how many are needed.

    Example:
        >>> order_statistic_ranks(10)
        Ranks(low=2, high=9, coverage=0.978515625)
    """
    needed = samples_needed(quantile, confidence)
    if size < needed:
        raise MeasurementError(
            f"A two-sided {confidence:.6g} interval of the {quantile:.6g} quantile needs at least {needed} samples; "
            f"there are {size}. Take more samples, or ask for a quantile nearer to the median."
        )
    low, high = _low_rank(size, quantile, confidence), _high_rank(size, quantile, confidence)
    return Ranks(low, high, float(bdtr(high - 1, size, quantile) - bdtr(low - 1, size, quantile)))


@functools.lru_cache(maxsize=1024)
def samples_needed(quantile: float = 0.5, confidence: float = 0.95) -> int:
    r"""Return the least number of samples for a two-sided interval of a quantile.

    The smallest :math:`n` with :math:`q^n \le \alpha/2` and :math:`(1-q)^n \le \alpha/2`: else even the extremes
    are likely enough to lie on one side of the quantile.

    Source: T. Hoefler, R. Belli, SC15, rule 8.

    Example:
        >>> [samples_needed(quantile) for quantile in (0.5, 0.9, 0.95, 0.99, 0.999)]
        [6, 36, 72, 368, 3688]
    """
    check_confidence(confidence)
    is_number = isinstance(quantile, (int, float)) and not isinstance(quantile, bool)
    if not is_number or not 0 < quantile < 1 or 1 - quantile == 1:
        raise MeasurementError(f"A quantile lies between 0 and 1, such as 0.5 for the median; it is {quantile!r}.")
    size = max(1, math.floor(math.log((1 - confidence) / 2) / math.log(max(quantile, 1 - quantile))) - 1)
    while not (_low_rank(size, quantile, confidence) >= 1 and _high_rank(size, quantile, confidence) <= size):
        size += 1
    return size


def quantile_interval(
    samples: ArrayLike, quantile: float = 0.5, confidence: float = 0.95, *, presorted: bool = False
) -> Interval:
    """Return a quantile of the samples with its exact confidence interval.

    The ends are order statistics (:func:`order_statistic_ranks`); the estimate interpolates linearly between the
    neighbours of position ``(n - 1) q``, as ``numpy.quantile`` does. The coverage holds for independent samples of any
    continuous distribution; with ties it is larger. Correlated samples are covered less often (see
    :func:`deep500.measure.statistics.diagnostics.independence`).

    Infinite samples are allowed: a run that was given up is longer than all others.

    Args:
        samples: One row of samples, in any unit.
        quantile: The quantile, between 0 and 1; the median by default.
        confidence: The confidence, between 0 and 1.
        presorted: The samples ascend already.

    Raises:
        MeasurementError: There are too few samples (the message says how many are needed), or some are NaN.

    Example:
        >>> quantile_interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0])
        Interval(estimate=3.5, low=1.0, high=6.0, confidence_requested=0.95, coverage=0.96875, exact=True)
    """
    ordered = np.asarray(samples, dtype=np.float64)
    if ordered.ndim != 1:
        raise MeasurementError(
            f"One row of samples is needed, the shape is {ordered.shape}; several rows go to quantile_intervals."
        )
    size = len(ordered)
    ranks = order_statistic_ranks(size, quantile, confidence)
    if not presorted:
        ordered = np.sort(ordered)
    if ordered[-1] != ordered[-1] or (presorted and np.isnan(ordered).any()):  # sorting puts NaN last
        raise MeasurementError(_nan_message(ordered))
    position = (size - 1) * quantile
    floor = int(position)
    below = ordered.item(floor)
    above = ordered.item(min(floor + 1, size - 1))
    fraction = position - floor
    estimate = below if fraction == 0 or above == below else below + fraction * (above - below)
    return Interval(estimate, ordered.item(ranks.low - 1), ordered.item(ranks.high - 1), confidence, ranks.coverage)


def quantile_intervals(rows: ArrayLike, quantile: float = 0.5, confidence: float = 0.95) -> IntervalRows:
    """Return :func:`quantile_interval` of every row of an array ``[..., samples]`` at once.

    Raises:
        MeasurementError: The rows are too short (the message says how many samples are needed), or hold NaN.
    """
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim < 2:
        raise MeasurementError(f"Rows of samples are needed, the shape is {table.shape}; one row: quantile_interval.")
    if np.isnan(table).any():
        raise MeasurementError(_nan_message(table))
    size = table.shape[-1]
    ranks = order_statistic_ranks(size, quantile, confidence)
    position = (size - 1) * quantile
    floor = int(position)
    ceiling = min(floor + 1, size - 1)
    ordered = np.partition(table, sorted({ranks.low - 1, floor, ceiling, ranks.high - 1}), axis=-1)
    below, above = ordered[..., floor], ordered[..., ceiling]
    fraction = position - floor
    with np.errstate(invalid="ignore"):  # infinity minus infinity, in entries that are not taken
        between = below + fraction * (above - below)
    estimate = below if fraction == 0 else np.where(above == below, below, between)
    return IntervalRows(estimate, ordered[..., ranks.low - 1], ordered[..., ranks.high - 1], confidence, ranks.coverage)


def relative_half_width(estimate: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return half the width of intervals over the size of their estimates: 0/0 is 0, anything else over 0 infinite."""
    half = (np.asarray(high, dtype=np.float64) - np.asarray(low)) / 2
    size = np.abs(np.asarray(estimate, dtype=np.float64))
    safe = np.where(size > 0, size, 1.0)
    return np.where(size > 0, half / safe, np.where(half > 0, np.inf, 0.0))


def _low_rank(size: int, quantile: float, confidence: float) -> int:
    """Largest rank with P(B < rank) at most half the error, 0 when there is none."""
    return bisect.bisect_right(range(size), (1 - confidence) / 2, key=lambda k: float(bdtr(k, size, quantile)))


def _high_rank(size: int, quantile: float, confidence: float) -> int:
    """Smallest rank with P(B >= rank) at most half the error, more than ``size`` when there is none."""
    error = (1 - confidence) / 2
    return 1 + bisect.bisect_left(range(size), -error, key=lambda k: -float(bdtrc(k, size, quantile)))


def _nan_message(samples: NDArray[np.float64]) -> str:
    missing = int(np.isnan(samples).sum())
    return f"{missing} of {samples.size} samples are NaN; measure them again: leaving them out would be a choice."
