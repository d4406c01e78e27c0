"""How rank statistics are distributed when there is no difference."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RankNull", "rank_sum_null", "signed_rank_null"]

#: Up to this many samples a side, distributions are counted; beyond, they are normal to 3 digits in the tails.
MAXIMUM_EXACT = 50


@dataclass(frozen=True)
class RankNull:
    """The null distribution of a statistic that counts pairs, symmetric around half their number.

    Attributes:
        pairs: Number of pairs, the largest value of the statistic.
        deviation: Standard deviation.
        cumulative: ``P(T <= k)`` for k = 0, 1, ...; ``None`` for the normal approximation.
    """

    pairs: int
    deviation: float
    cumulative: NDArray[np.float64] | None

    def at_most(self, count: int) -> float:
        """Return P(T <= count)."""
        if self.cumulative is not None:
            return float(self.cumulative[count])
        return float(ndtr((count + 0.5 - self.pairs / 2) / self.deviation))

    def critical(self, error: float) -> int:
        """Return the largest count with P(T <= count) at most ``error``, -1 when there is none."""
        if self.cumulative is not None:
            return int(np.searchsorted(self.cumulative, error, side="right")) - 1
        return max(-1, math.floor(self.pairs / 2 - 0.5 + self.deviation * float(ndtri(error))))


@functools.lru_cache(maxsize=1024)
def signed_rank_null(size: int) -> RankNull:
    r"""Return the distribution of Wilcoxon's signed-rank statistic, the number of Walsh averages above 0.

    Counted up to 50 samples (the coefficients of :math:`\prod_{i=1}^n (1 + x^i) / 2^n`), beyond that normal with
    variance :math:`n (n+1) (2n+1) / 24`.
    """
    pairs = size * (size + 1) // 2
    deviation = math.sqrt(size * (size + 1) * (2 * size + 1) / 24)
    if size > MAXIMUM_EXACT:
        return RankNull(pairs, deviation, None)
    chances = np.zeros(pairs + 1)
    chances[0] = 1.0
    for rank in range(1, size + 1):
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[:-rank]
        chances = (chances + shifted) / 2
    return RankNull(pairs, deviation, np.cumsum(chances))


@functools.lru_cache(maxsize=1024)
def rank_sum_null(size_a: int, size_b: int) -> RankNull:
    """Return the distribution of the Mann-Whitney statistic, the number of pairs in which a is above b.

    Counted up to 50 samples a side, by the recursion of H. B. Mann, D. R. Whitney, Annals of Mathematical
    Statistics 18 (1947), on probabilities; beyond that normal with variance ``a b (a + b + 1) / 12``.
    """
    pairs = size_a * size_b
    deviation = math.sqrt(pairs * (size_a + size_b + 1) / 12)
    if max(size_a, size_b) > MAXIMUM_EXACT:
        return RankNull(pairs, deviation, None)
    row = [np.ones(1) for _ in range(size_b + 1)]  # no sample of a
    for m in range(1, size_a + 1):
        following = [np.ones(1)]
        for n in range(1, size_b + 1):
            chances = np.zeros(m * n + 1)
            chances[n:] += row[n] * (m / (m + n))  # the largest sample is one of a, above all n of b
            chances[: m * (n - 1) + 1] += following[n - 1] * (n / (m + n))
            following.append(chances)
        row = following
    return RankNull(pairs, deviation, np.cumsum(row[size_b]))
