"""Comparison of two systems: the ratio of their samples with its interval, its base, and a verdict."""

from __future__ import annotations

import enum
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.metric import Direction
from deep500.measure.statistics._pairwise import PairSums, differences, walsh_averages
from deep500.measure.statistics._rank_nulls import RankNull, rank_sum_null, signed_rank_null
from deep500.measure.statistics._samples import check_confidence, finite_samples
from deep500.measure.statistics.quantiles import Interval, quantile_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["FEWEST_SAMPLES", "Comparison", "Verdict", "paired_log_ratio", "unpaired_log_ratio"]

#: Fewer pairs, or samples a side, are refused at any confidence.
FEWEST_SAMPLES = 6


class Verdict(str, enum.Enum):
    """What a comparison says of the first system, seen from the second, its base."""

    FASTER = "faster"  #: better: smaller costs or higher rates
    SLOWER = "slower"  #: worse
    UNDECIDED = "undecided"  #: the interval holds 1
    EQUIVALENT = "equivalent"  #: the ratio differs from 1 by less than the stated margin


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems side by side: never the ratio without its base.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 1 and 7.

    Attributes:
        ratio: Ratio a / b with its interval.
        a: Median of the first system with its interval, in the unit of the samples.
        b: Median of the second system, the base of the ratio, with its interval.
        p_value: Two-sided p-value of no difference. It is at most ``1 - confidence`` exactly when ``ratio`` excludes 1.
        verdict: What is said of the first system.
        direction: Which values are better.
        margin: The ratios from ``1 / (1 + margin)`` to ``1 + margin`` count as equivalent; ``None`` for none.
        paired: Whether samples were compared pair by pair.
    """

    ratio: Interval
    a: Interval
    b: Interval
    p_value: float
    verdict: Verdict
    direction: Direction
    margin: float | None
    paired: bool


def paired_log_ratio(
    a: ArrayLike,
    b: ArrayLike,
    confidence: float = 0.95,
    *,
    margin: float | None = None,
    direction: Direction = Direction.LOWER,
) -> Comparison:
    r"""Compare two systems whose samples were taken in pairs, interleaved in random order.

    With :math:`d_i = \log a_i - \log b_i`, the estimate is :math:`\exp` of the median of the Walsh averages
    :math:`(d_i + d_j) / 2, i \le j`, and the ends of its interval are their order statistics :math:`k + 1` and
    :math:`n (n + 1) / 2 - k` with :math:`k` the largest number with :math:`P(T^+ \le k) \le \alpha / 2`, where
    :math:`T^+` is Wilcoxon's signed-rank statistic. Exact up to 50 pairs for independent log-ratios that are symmetric
    around their middle, as they are when the pairs of one system differ from those of the other by a factor; ties
    make the interval and the p-value conservative.

    Source: J. L. Hodges, E. L. Lehmann, "Estimates of Location Based on Rank Tests", Annals of Mathematical
    Statistics 34 (1963); F. Wilcoxon, Biometrics Bulletin 1 (1945); D. J. Schuirmann, "A comparison of the two
    one-sided tests procedure", J. Pharmacokinetics and Biopharmaceutics 15 (1987), for the margin.

    Args:
        a: Samples of the first system, all positive. Launch medians, where samples come from several launches.
        b: Samples of the second system, the base; ``b[i]`` belongs to ``a[i]``.
        confidence: The confidence, between 0 and 1.
        margin: Relative difference that does not matter, such as 0.01. When the interval of confidence
            ``2 confidence - 1`` lies within it (two one-sided tests at ``1 - confidence`` each), the verdict is
            equivalent, also when the ratio is not exactly 1.
        direction: Which values are better: lower for costs, higher for rates.

    Raises:
        MeasurementError: The lengths differ, there are too few pairs, or samples are not positive and finite.

    Example:
        >>> old = [2.00, 2.10, 1.90, 2.20, 2.05, 1.95]
        >>> result = paired_log_ratio([1.00, 1.06, 0.96, 1.09, 1.02, 0.99], old)
        >>> result.verdict.value, round(result.ratio.estimate, 2), result.b.estimate
        ('faster', 0.5, 2.025)
    """
    a, b = _positive(a, "first"), _positive(b, "second")
    if len(a) != len(b):
        raise MeasurementError(
            f"{len(a)} samples cannot be paired with {len(b)}: take them in pairs, or compare with unpaired_log_ratio."
        )
    null = signed_rank_null(len(a))
    _check_enough(null, confidence, f"pairs; there are {len(a)}", signed_rank_null)
    return _compare(walsh_averages(np.log(a) - np.log(b)), null, (a, b), confidence, (margin, direction, True))


def unpaired_log_ratio(
    a: ArrayLike,
    b: ArrayLike,
    confidence: float = 0.95,
    *,
    margin: float | None = None,
    direction: Direction = Direction.LOWER,
) -> Comparison:
    r"""Compare two systems whose samples are independent of each other, such as medians of separate launches.

    The estimate is :math:`\exp` of the median of the differences :math:`\log a_i - \log b_j`, and the ends of its
    interval are their order statistics :math:`k + 1` and :math:`n m - k` with :math:`k` the largest number with
    :math:`P(U \le k) \le \alpha / 2`, where :math:`U` is the Mann-Whitney statistic. Exact up to 50 samples a side
    where the systems differ by a factor alone; ties make it conservative. Samples taken one block after the other
    share no noise: drift of the machine then looks like a difference, so prefer pairs.

    Source: J. L. Hodges, E. L. Lehmann, Annals of Mathematical Statistics 34 (1963); H. B. Mann, D. R. Whitney,
    Annals of Mathematical Statistics 18 (1947).

    Args:
        a: Samples of the first system, all positive.
        b: Samples of the second system, the base.
        confidence: The confidence, between 0 and 1.
        margin: Relative difference that does not matter; see :func:`paired_log_ratio`.
        direction: Which values are better.

    Raises:
        MeasurementError: There are too few samples, or some are not positive and finite.
    """
    a, b = _positive(a, "first"), _positive(b, "second")
    null = rank_sum_null(len(a), len(b))
    fewest = min(len(a), len(b))
    _check_enough(null, confidence, f"samples a side; there are {fewest}", lambda size: rank_sum_null(size, size))
    quantile_interval(a, 0.5, confidence)  # says how many a median needs, where that is more
    return _compare(differences(np.log(a), np.log(b)), null, (a, b), confidence, (margin, direction, False))


def _compare(
    logs: PairSums,
    null: RankNull,
    samples: tuple[NDArray[np.float64], NDArray[np.float64]],
    confidence: float,
    question: tuple[float | None, Direction, bool],
) -> Comparison:
    margin, direction, paired = question
    if margin is not None and not margin > 0:
        raise MeasurementError(f"A margin is a positive relative difference, such as 0.01; it is {margin!r}.")
    error = 1 - confidence
    low, high = _log_ends(logs, null, error / 2)
    coverage = 1 - 2 * null.at_most(null.critical(error / 2))
    ratio = Interval(
        math.exp(logs.median()), math.exp(low), math.exp(high), confidence, coverage, exact=null.cumulative is not None
    )
    fewer_side = min(null.at_most(logs.at_most(0.0)), null.at_most(logs.count - logs.below(0.0)))
    within = margin is not None and _is_within(_log_ends(logs, null, error), math.log1p(margin))
    return Comparison(
        ratio=ratio,
        a=quantile_interval(samples[0], 0.5, confidence),
        b=quantile_interval(samples[1], 0.5, confidence),
        p_value=min(1.0, 2 * fewer_side),
        verdict=Verdict.EQUIVALENT if within else _verdict(low, high, direction),
        direction=direction,
        margin=margin,
        paired=paired,
    )


def _log_ends(logs: PairSums, null: RankNull, error: float) -> tuple[float, float]:
    critical = null.critical(error)
    return logs.ranked(critical + 1), logs.ranked(logs.count - critical)


def _is_within(ends: tuple[float, float], bound: float) -> bool:
    return -bound < ends[0] and ends[1] < bound


def _verdict(low: float, high: float, direction: Direction) -> Verdict:
    if low <= 0 <= high:
        return Verdict.UNDECIDED
    is_smaller = high < 0
    return Verdict.FASTER if is_smaller is (direction is Direction.LOWER) else Verdict.SLOWER


def _positive(samples: ArrayLike, which: str) -> NDArray[np.float64]:
    row = finite_samples(samples, least=FEWEST_SAMPLES, what=f"samples of the {which} system")
    wrong = int(np.count_nonzero(row <= 0))
    if wrong:
        raise MeasurementError(
            f"{wrong} of {len(row)} samples of the {which} system are not positive, so they have no ratio. Ratios are "
            "for costs and rates; compare scores by their difference."
        )
    return row


def _check_enough(null: RankNull, confidence: float, given: str, null_of: Callable[[int], RankNull]) -> None:
    error = (1 - check_confidence(confidence)) / 2
    if null.critical(error) < 0:
        needed = next(size for size in itertools.count(FEWEST_SAMPLES) if null_of(size).critical(error) >= 0)
        raise MeasurementError(f"An interval of confidence {confidence:.6g} needs at least {needed} {given}.")
