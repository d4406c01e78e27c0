"""Where warm-up ends: change points of the ranks, and the level that the last part of a run holds."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from deep500.core.errors import MeasurementError
from deep500.measure.statistics._samples import finite_samples

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["SteadyState", "change_points", "detectable_length", "normal_scores", "steady_state"]

#: A change costs this times the logarithm of the number of samples. The Bayesian criterion, made for independent normal
#: samples, would be 2; 8 keeps series with a correlation of 0.5 between neighbours free of false alarms too.
PENALTY = 8.0


@dataclass(frozen=True, slots=True)
class SteadyState:
    """Where a run is steady.

    Attributes:
        start: Index of the first sample of the steady part; ``None`` for no steady state.
        samples: Number of samples of the run.
        changes: Indices at which the level changes over the whole run, ascending.
        detectable: A warm-up of fewer samples than this cannot be told from chance, however slow it is.
        reason: What was found, for people.
    """

    start: int | None
    samples: int
    changes: tuple[int, ...]
    detectable: int
    reason: str


def steady_state(
    samples: ArrayLike, *, tolerance: float = 0.01, least_share: float = 0.5, penalty: float = PENALTY
) -> SteadyState:
    """Find where a run becomes steady, if it does.

    The run is split where its level changes (:func:`change_points`). The steady part begins with the first part from
    which on all medians lie within the tolerance of the last. What remains is ranked and split again, until it does
    not change any more: next to a large warm-up small changes show only then. Where no step remains but a trend (its
    straight line explains as much of the scores as a change has to), the older half is taken off as well.

    Source: E. Barrett et al., "Virtual Machine Warmup Blows Hot and Cold", OOPSLA 2017, for the parts and the
    possible answer that there is no steady state; see :func:`change_points` for the detection.

    Args:
        samples: Samples in the order in which they were taken, in any unit.
        tolerance: Levels that differ by this share of the last are taken as equal.
        least_share: Share of the run that has to be steady.
        penalty: Cost of a change over the logarithm of the number of samples.

    Raises:
        MeasurementError: There are too few samples for any warm-up to be seen; the message says how many are needed.

    Example:
        >>> noise = np.random.default_rng(0).lognormal(0, 0.1, 200)
        >>> noise[:30] *= 2
        >>> steady_state(noise).start
        30
    """
    row = finite_samples(samples)
    size = len(row)
    detectable = detectable_length(size, penalty)
    if detectable is None:
        needed = _fewest_samples(penalty)
        raise MeasurementError(
            f"A change of level shows among {needed} samples at the earliest; there are {size}. Take more samples, or "
            "discard a fixed number as warm-up and say so."
        )
    changes = change_points(row, penalty)
    start, part = 0, changes
    while size - start >= max(least_share * size, 2):
        rest = row[start:]
        further = _level_start(rest, part, tolerance) or _trend_start(rest, penalty, tolerance)
        if not further:
            break
        start += further
        part = change_points(row[start:], penalty)
    if size - start < least_share * size:
        reason = f"no steady state: only the last {size - start} of {size} samples keep one level"
        return SteadyState(None, size, changes, detectable, reason)
    reason = f"steady from sample {start} of {size}; a warm-up of fewer than {detectable} samples would not be seen"
    return SteadyState(start, size, changes, detectable, reason)


def change_points(samples: ArrayLike, penalty: float = PENALTY) -> tuple[int, ...]:
    r"""Return the indices at which the level of a series changes, ascending.

    The series is replaced by its normal scores :math:`z`, which tames heavy tails. Of all partitions into segments
    :math:`s`, the one with the least :math:`\sum_s \sum_{i \in s} (z_i - \bar z_s)^2 + p \log n` is found exactly, by
    dynamic programming in O(n²). This is kernel change-point detection with the linear kernel; the results are those of
    ``ruptures.KernelCPD(kernel="linear", min_size=2)`` (compared on 1440 series), in 2 ms for 500 samples.

    Source: B. Jackson et al., "An Algorithm for Optimal Partitioning of Data on an Interval", IEEE Signal Processing
    Letters 12 (2005); S. Arlot, A. Celisse, Z. Harchaoui, "A Kernel Multiple Change-point Algorithm via Model
    Selection", JMLR 20 (2019).

    Args:
        samples: The series, in any unit.
        penalty: Cost of a segment over the logarithm of the number of samples.
    """
    scores = normal_scores(samples)
    size = len(scores)
    if detectable_length(size, penalty) is None:
        return ()
    cost = penalty * math.log(size)
    sums = np.concatenate([[0.0], np.cumsum(scores)])
    lengths = np.arange(size, 0, -1.0)
    best = np.zeros(size + 1)  # least cost of the first t samples, without the sum of all squares
    best[0], best[1] = -cost, np.inf  # a segment has two samples or more
    last = np.zeros(size + 1, dtype=np.intp)
    for end in range(2, size + 1):
        gain = sums[end] - sums[: end - 1]
        gain *= gain
        gain /= lengths[size - end : size - 1]
        candidates = best[: end - 1] - gain
        start = int(candidates.argmin())
        best[end] = candidates[start] + cost
        last[end] = start
    found = []
    end = int(last[size])
    while end:
        found.append(end)
        end = int(last[end])
    return tuple(reversed(found))


def normal_scores(samples: ArrayLike) -> NDArray[np.float64]:
    r"""Return :math:`\Phi^{-1}((r_i - 3/8) / (n + 1/4))` of the ranks, ties sharing their mean rank.

    Source: G. Blom, "Statistical Estimates and Transformed Beta-Variables", 1958.
    """
    row = finite_samples(samples)
    # What scipy.stats.rankdata returns; importing that package would cost each launch a third of a second.
    _, place, counts = np.unique(row, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return np.asarray(ndtri((ranks - 0.375) / (len(row) + 0.25)), dtype=np.float64)


@functools.lru_cache(maxsize=1024)
def detectable_length(size: int, penalty: float = PENALTY) -> int | None:
    """Return the shortest warm-up that can be seen in a run, ``None`` when there is none.

    It is the least number of samples whose split from the others pays for itself when all of them are slower than
    every other sample.

    Example:
        >>> [detectable_length(size) for size in (20, 50, 100, 500)]
        [None, None, 13, 9]
    """
    if size < 4:
        return None
    scores = ndtri((np.arange(size, 0, -1.0) - 0.375) / (size + 0.25))
    lengths = np.arange(1, size)
    gains = np.cumsum(scores)[:-1] ** 2 * size / (lengths * (size - lengths))
    pays = np.flatnonzero((gains > penalty * math.log(size)) & (lengths >= 2) & (lengths <= size - 2))
    return int(lengths[pays[0]]) if len(pays) else None


def _fewest_samples(penalty: float) -> int:
    size = 4
    while detectable_length(size, penalty) is None:
        size += 1
    return size


def _level_start(row: NDArray[np.float64], changes: tuple[int, ...], tolerance: float) -> int:
    """Return where the parts begin whose medians, up to the end, are that of the last part within the tolerance."""
    bounds = [0, *changes, len(row)]
    medians = [float(np.median(row[start:end])) for start, end in itertools.pairwise(bounds)]
    first = len(medians) - 1
    while first and abs(medians[first - 1] - medians[-1]) <= tolerance * abs(medians[-1]):
        first -= 1
    return bounds[first]


def _trend_start(row: NDArray[np.float64], penalty: float, tolerance: float) -> int:
    """Return 0 for a row without a trend, else where its newer half begins."""
    size = len(row)
    scores, time = normal_scores(row), np.arange(size) - (size - 1) / 2
    gain = float(scores @ time) ** 2 / float(time @ time)
    middle = size // 2 + 1
    older, newer = float(np.median(row[:middle])), float(np.median(row[middle - 1 :]))
    return middle if gain > penalty * math.log(size) and abs(older - newer) > tolerance * abs(newer) else 0
