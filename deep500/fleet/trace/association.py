"""Spearman's rank correlation of factors with outcome and time, over users, corrected for their number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from scipy.stats import t as student

from deep500.fleet.trace.factors import FoundFactor
from deep500.fleet.trace.observed import CENSORED, FAILED, PASSED, ObservedTrace
from deep500.fleet.trace.survival import FEWEST_CLUSTERS, distinct
from deep500.measure.statistics import holm

__all__ = ["RankCorrelation", "correlations", "spearman"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankCorrelation:
    """How two things rise together.

    Attributes:
        factor: One.
        against: The other.
        tasks: The number of tasks that tell of both.
        users: The number of their users.
        rho: Spearman's correlation.
        low: The lower end of its interval, over users; ``None`` with too few.
        high: The upper end.
        p_value: p-value of 0, over users.
        adjusted_p: The same after Holm's correction for all correlations.
    """

    factor: str
    against: str
    tasks: int
    users: int
    rho: float
    low: float | None
    high: float | None
    p_value: float | None
    adjusted_p: float | None


def correlations(
    trace: ObservedTrace, factors: Sequence[FoundFactor], confidence: float = 0.95
) -> list[RankCorrelation]:
    """Return the correlations of each numeric factor with failing, and with the time of tasks that failed and passed.

    The times of tasks that were not seen to their end are not in these: they describe what ended, and longer tasks are
    seen to their end less often. Models that keep them are beside.
    """
    found = []
    for name, chosen in (
        ("failing rather than passing", trace.event != CENSORED),
        ("time to failure of failed tasks", trace.event == FAILED),
        ("time to success of passed tasks", trace.event == PASSED),
    ):
        for factor in factors:
            if factor.values is None:
                continue
            rows = np.flatnonzero(chosen & np.isfinite(factor.values))
            y = (trace.event[rows] == FAILED).astype(np.float64) if "rather" in name else trace.duration_s[rows]
            result = spearman(factor.values[rows], y, trace.user[rows], confidence)
            if result is not None:
                found.append(replace(result, factor=factor.factor.name, against=name))
    tested = [place for place, result in enumerate(found) if result.p_value is not None]
    if tested:
        adjusted = holm([found[place].p_value or 0.0 for place in tested], 1 - confidence).adjusted
        for place, value in zip(tested, adjusted):
            found[place] = replace(found[place], adjusted_p=float(value))
    return found


def spearman(x: Floats, y: Floats, clusters: NDArray[np.int64], confidence: float = 0.95) -> RankCorrelation | None:
    r"""Return Spearman's correlation with an interval over clusters; ``None`` where one side is all the same.

    With ranks as shares :math:`F(x)`, :math:`G(y)` (the mean of ties), a row's influence on their covariance is
    :math:`(F(x) - \tfrac12)(G(y) - \tfrac12) + E[(1_{X > x} + \tfrac12 1_{X = x})(G(Y) - \tfrac12)]
    + E[(1_{Y > y} + \tfrac12 1_{Y = y})(F(X) - \tfrac12)]` less its mean: the last two are what the row does to the
    ranks of others. Ties lessen the ranks' variance, :math:`(1 - \sum_k p_k^3) / 12` with the shares :math:`p_k` of
    equal values, and a row's influence on that is :math:`-p_k^2 / 4` less its mean. The interval is Student's on the
    scale of Fisher.

    Source: C. Spearman (1904); C. Croux, C. Dehon, Statistical Methods and Applications 19 (2010).
    """
    if len(x) < 3:
        return None
    f, g = ((rankdata(side) - 0.5) / len(side) - 0.5 for side in (x, y))
    scale = math.sqrt(float(f.var() * g.var()))
    if scale == 0:
        return None
    rho = min(1.0, max(-1.0, float((f * g).mean()) / scale))
    (f_above, f_spread), (g_above, g_spread) = _of_ranks(f, g), _of_ranks(g, f)
    influence = (f * g + f_above + g_above) / scale - rho / 2 * (f_spread + g_spread)
    sums = np.bincount(clusters, weights=(influence - influence.mean()) / len(x))
    count = distinct(clusters)
    result = RankCorrelation("", "", len(x), count, rho, None, None, None, None)
    if count < FEWEST_CLUSTERS or abs(rho) == 1:
        return result
    error = math.sqrt(float((sums**2).sum()) * count / (count - 1)) / (1 - rho**2)
    z, wide = math.atanh(rho), float(student.ppf(0.5 + confidence / 2, count - 1)) * error
    p_value = 2 * float(student.sf(abs(z) / error, count - 1)) if error > 0 else 0.0
    return replace(result, low=math.tanh(z - wide), high=math.tanh(z + wide), p_value=p_value)


def _of_ranks(ranks: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return what each row does to the ranks of others, and to their variance through the share of its ties."""
    _, place, counts = np.unique(ranks, return_inverse=True, return_counts=True)
    sums = np.bincount(place, weights=values)
    higher = np.concatenate([sums[::-1].cumsum()[::-1][1:], [0.0]])
    squares = (counts / len(ranks)) ** 2
    return ((higher + sums / 2) / len(ranks))[place], -squares[place] / (4 * ranks.var())
