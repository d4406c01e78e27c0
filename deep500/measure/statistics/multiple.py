"""Many comparisons at once: Holm's correction, and Kruskal-Wallis with Dunn's pairs for many systems."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc, ndtr
from scipy.stats import rankdata

from deep500.core.counts import check_count
from deep500.core.errors import MeasurementError
from deep500.measure.statistics._samples import check_confidence, finite_samples
from deep500.measure.statistics.quantiles import Interval, quantile_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

__all__ = ["HolmResult", "ManySystems", "PairOfSystems", "compare_many", "holm", "launches_needed"]


@dataclass(frozen=True, slots=True)
class HolmResult:
    """p-values corrected for their number, in the order given.

    Attributes:
        adjusted: Adjusted p-values.
        rejected: Whether each hypothesis is rejected at ``level``.
        level: Highest accepted chance that any true hypothesis is rejected.
    """

    adjusted: NDArray[np.float64]
    rejected: NDArray[np.bool_]
    level: float


@dataclass(frozen=True, slots=True)
class PairOfSystems:
    """Two of many systems.

    Attributes:
        first: Name of one system.
        second: Name of the other.
        z: Difference of their mean ranks in standard deviations; negative when the first tends to be smaller.
        p_value: Two-sided p-value of this pair alone.
        adjusted: The p-value corrected for the number of pairs.
        different: Whether they differ, after correction and only if not all systems may be alike.
    """

    first: str
    second: str
    z: float
    p_value: float
    adjusted: float
    different: bool


@dataclass(frozen=True, slots=True)
class ManySystems:
    """Many systems side by side.

    Attributes:
        medians: Median of each system with its interval, in the unit of the samples.
        statistic: The Kruskal-Wallis statistic H, corrected for ties.
        p_value: p-value of all systems being alike.
        pairs: Every pair of systems.
    """

    medians: dict[str, Interval]
    statistic: float
    p_value: float
    pairs: tuple[PairOfSystems, ...]


def holm(p_values: ArrayLike, level: float = 0.05) -> HolmResult:
    r"""Correct p-values for their number, so that ``level`` bounds the chance of any false rejection.

    With the p-values in ascending order, :math:`\tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})`. It
    holds whatever the dependence of the tests, and is never weaker than Bonferroni's correction.

    Source: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian J. of Statistics 6 (1979).

    Raises:
        MeasurementError: There is no p-value, or one is not between 0 and 1.

    Example:
        >>> holm([0.01, 0.04, 0.03]).adjusted.tolist()
        [0.03, 0.06, 0.06]
    """
    p = finite_samples(p_values, what="p-values")
    check_confidence(1 - level)
    if p.min() < 0 or p.max() > 1:
        raise MeasurementError(f"p-values lie between 0 and 1; these go from {p.min():.6g} to {p.max():.6g}.")
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return HolmResult(adjusted, adjusted <= level, level)


def launches_needed(comparisons: int, level: float = 0.05) -> int:
    r"""Return the fewest launches with which one of several paired comparisons can be decided after Holm's correction.

    The smallest two-sided p-value of :math:`n` signed ranks is :math:`2^{1-n}`, and the first of :math:`m` comparisons
    is decided where :math:`m\, 2^{1-n} \le` ``level``.

    Raises:
        InvalidInputError: The number of comparisons is no whole number from 1.
        MeasurementError: The level is not between 0 and 1.

    Example:
        >>> launches_needed(1), launches_needed(2), launches_needed(3)
        (6, 7, 7)
    """
    check_count("comparisons", comparisons, least=1)
    check_confidence(1 - level)
    return next(n for n in itertools.count(1) if comparisons * 2.0 ** (1 - n) <= level)


def compare_many(systems: Mapping[str, ArrayLike], confidence: float = 0.95) -> ManySystems:
    r"""Compare three or more systems whose samples are independent, such as medians of launches.

    Kruskal-Wallis asks whether all may be alike: over the ranks of all :math:`N` samples,

    .. math:: H = \frac{12}{N (N + 1)} \sum_i n_i \left(\bar R_i - \frac{N + 1}{2}\right)^2 \Big/
              \left(1 - \frac{\sum_t t^3 - t}{N^3 - N}\right)

    is :math:`\chi^2` with one degree less than systems. Dunn then compares each pair,

    .. math:: z_{ij} = (\bar R_i - \bar R_j) \Big/ \sqrt{\left(\frac{N (N + 1)}{12} -
              \frac{\sum_t t^3 - t}{12 (N - 1)}\right) \left(\frac{1}{n_i} + \frac{1}{n_j}\right)},

    and Holm corrects for their number. Both approximate, well enough from 6 samples a system.

    Source: W. H. Kruskal, W. A. Wallis, J. American Statistical Association 47 (1952); O. J. Dunn, "Multiple
    Comparisons Using Rank Sums", Technometrics 6 (1964); S. Holm (1979); T. Hoefler, R. Belli, SC15, rule 7.

    Args:
        systems: The samples of each system by name.
        confidence: One minus the accepted chance of any false difference.

    Raises:
        MeasurementError: There are fewer than three systems, too few samples, or all samples are equal.
    """
    if len(systems) < 3:
        raise MeasurementError(f"Three systems or more are needed, there are {len(systems)}; compare two with a ratio.")
    rows = [finite_samples(row, least=6, what=f"samples of {name}") for name, row in systems.items()]
    medians = {name: quantile_interval(row, 0.5, confidence) for name, row in zip(systems, rows)}
    sizes = np.array([len(row) for row in rows])
    total = int(sizes.sum())
    everything = np.concatenate(rows)
    ranks = rankdata(everything)
    repeats = np.unique(everything, return_counts=True)[1].astype(np.float64)
    ties = float((repeats**3 - repeats).sum())
    if len(repeats) == 1:
        raise MeasurementError(f"All {total} samples are {everything[0]:.6g}: there is nothing to compare.")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    mean_ranks = np.add.reduceat(ranks, starts) / sizes
    h = 12 / (total * (total + 1)) * float((sizes * (mean_ranks - (total + 1) / 2) ** 2).sum())
    h /= 1 - ties / (total**3 - total)
    p_value = float(chdtrc(len(rows) - 1, h))
    variance = total * (total + 1) / 12 - ties / (12 * (total - 1))
    pairs = _dunn_pairs(list(systems), mean_ranks, variance / sizes, (1 - confidence, p_value))
    return ManySystems(medians, h, p_value, pairs)


def _dunn_pairs(
    names: list[str], mean_ranks: NDArray[np.float64], variances: NDArray[np.float64], levels: tuple[float, float]
) -> tuple[PairOfSystems, ...]:
    """Compare every pair; ``levels`` are the accepted chance of a false difference and the p-value of all alike."""
    level, p_of_all = levels
    indices = list(itertools.combinations(range(len(names)), 2))
    z = [float(mean_ranks[i] - mean_ranks[j]) / math.sqrt(variances[i] + variances[j]) for i, j in indices]
    p_values = [2 * float(ndtr(-abs(value))) for value in z]
    corrected = holm(p_values, level)
    return tuple(
        PairOfSystems(
            first=names[i],
            second=names[j],
            z=z[k],
            p_value=p_values[k],
            adjusted=float(corrected.adjusted[k]),
            different=bool(corrected.rejected[k]) and p_of_all <= level,
        )
        for k, (i, j) in enumerate(indices)
    )
