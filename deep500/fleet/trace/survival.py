"""Estimators of when tasks end: Kaplan-Meier, Aalen-Johansen and the log-rank test, for millions of rows.

All are written on sorted arrays, in time linear in the rows. Ties are kept as they are: nothing is jittered. Intervals
can take the tasks of one user together: such tasks succeed and fail alike, and an interval that takes each for itself
is too narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm
from scipy.stats import t as student

__all__ = [
    "FEWEST_CLUSTERS",
    "Incidence",
    "LogRank",
    "RiskTable",
    "cluster_interval",
    "distinct",
    "incidence",
    "incidence_at",
    "kaplan_meier",
    "log_rank",
    "risk_table",
]

Floats = NDArray[np.float64]

#: So many users, at least, are needed for an interval over users.
FEWEST_CLUSTERS = 5

#: A share as close to 0 or 1 is that, but for the last digits of a sum.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class RiskTable:
    """How many were at risk at each time at which something ended, and how many ended.

    Attributes:
        times: The distinct times, ascending.
        at_risk: How many had not ended before each.
        ended: How many ended then by each cause: ``[causes, times]``, the causes from 1 on.
        place: The time of each row, as a place in ``times``.
    """

    times: Floats
    at_risk: Floats
    ended: Floats
    place: NDArray[np.int64]


def risk_table(durations: NDArray[np.float64], events: NDArray[np.int8], causes: int = 2) -> RiskTable:
    """Count who is at risk and who ends.

    Args:
        durations: For how long each was seen, ascending.
        events: What ended that: 0 for nothing, 1 and up for a cause.
        causes: The number of causes.
    """
    new = np.empty(len(durations), dtype=bool)
    new[:1] = True
    np.not_equal(durations[1:], durations[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    place = np.cumsum(new) - 1
    ended = np.stack([np.bincount(place[events == cause], minlength=len(starts)) for cause in range(1, causes + 1)])
    return RiskTable(durations[starts], (len(durations) - starts).astype(np.float64), ended.astype(np.float64), place)


@dataclass(frozen=True)
class Incidence:
    """A probability over time, with its variance.

    Attributes:
        times: Times, ascending; between two, the probability is that of the earlier.
        value: The probability at each.
        variance: Its variance if rows are independent.
    """

    times: Floats
    value: Floats
    variance: Floats

    def at(self, time: float) -> float:
        """Return the probability at one time; before all, that at time 0 is not known to be anything but the first."""
        index = int(np.searchsorted(self.times, time, side="right")) - 1
        return float(self.value[index]) if index >= 0 else math.nan

    def band(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of intervals at each time if rows are independent, on the scale of log(-log)."""
        inside = (self.value > 0) & (self.value < 1)
        value = np.where(inside, self.value, 0.5)
        wide = norm.ppf(0.5 + confidence / 2) * np.sqrt(self.variance) / np.abs(value * np.log(value))
        low, high = value ** np.exp(np.minimum(wide, 500.0)), value ** np.exp(-wide)
        return np.where(inside, low, self.value), np.where(inside, high, self.value)


def kaplan_meier(table: RiskTable, causes: tuple[int, ...] = (1, 2)) -> Incidence:
    r"""Return the share that has not ended by some causes: :math:`\hat S(t) = \prod_{u \le t} (1 - d_u / n_u)`.

    Whoever ended by another cause counts as seen no longer: with one of several causes, this is what would be if there
    was only that cause and causes were independent, which nobody can check; :func:`incidence` needs no such belief.
    The variance is Greenwood's.

    Source: E. L. Kaplan, P. Meier, J. American Statistical Association 53 (1958); M. Greenwood (1926).
    """
    ended = table.ended[[cause - 1 for cause in causes]].sum(axis=0)
    share = np.cumprod(1 - ended / table.at_risk)
    left = table.at_risk - ended
    terms = np.divide(ended, table.at_risk * left, out=np.zeros_like(ended), where=left > 0)
    return Incidence(table.times, share, share**2 * np.cumsum(terms))


def incidence(table: RiskTable, cause: int) -> Incidence:
    r"""Return the share that has ended by one cause while others compete.

    :math:`\hat F_k(t) = \sum_{u \le t} \hat S(u-)\, d_{ku} / n_u`, where :math:`\hat S` is of all causes together. The
    variance is that of the delta method.

    Source: O. Aalen, S. Johansen, Scandinavian J. of Statistics 5 (1978); E. Marubini, M. G. Valsecchi, "Analysing
    Survival Data from Clinical Trials and Observational Studies" (1995), section 10.
    """
    n, d, dk = table.at_risk, table.ended.sum(axis=0), table.ended[cause - 1]
    before = _before(n, d)
    value = np.cumsum(before * dk / n)
    left = n * (n - d)
    a = np.divide(d, left, out=np.zeros_like(d), where=left > 0)
    b = before**2 * dk * (n - dk) / n**3
    c = before * dk / n**2
    variance = (
        value**2 * np.cumsum(a) - 2 * value * np.cumsum(value * a) + np.cumsum(value**2 * a) + np.cumsum(b)
        - 2 * (value * np.cumsum(c) - np.cumsum(value * c))
    )  # fmt: skip
    return Incidence(table.times, value, np.maximum(variance, 0.0))


def _before(n: Floats, d: Floats) -> Floats:
    share = np.cumprod(1 - d / n)
    return np.concatenate([[1.0], share[:-1]])


def incidence_at(
    table: RiskTable, events: NDArray[np.int8], clusters: NDArray[np.int64], cause: int, time: float
) -> tuple[float, float, int]:
    r"""Return the share that ended by one cause until a time, its standard error over clusters, and their number.

    Each row's influence on :math:`\hat F_k(t)`, the derivative of the estimate by the row's weight, is

    .. math:: \int_0^t \frac{\hat S(u-)\, dM_{ik}(u)}{n_u}
              - \int_0^t \frac{(\hat F_k(t) - \hat F_k(u))\, dM_i(u)}{n_u - d_u}

    with the martingale residuals :math:`M`; the variance is the sum over clusters of squared sums of influences. With
    one cause and rows as clusters it is Greenwood's.

    Source: T. M. Therneau, P. M. Grambsch, "Modeling Survival Data" (2000); the R package survival, survfit's
    infinitesimal jackknife.

    Args:
        table: Who is at risk.
        events: What ended each row.
        clusters: The cluster of each row.
        cause: The cause.
        time: The time.
    """
    last = int(np.searchsorted(table.times, time, side="right")) - 1
    n, d, dk = table.at_risk, table.ended.sum(axis=0), table.ended[cause - 1]
    count = distinct(clusters)
    if last < 0:
        return 0.0, 0.0, count
    before = _before(n, d)
    value = np.cumsum(before * dk / n)
    ahead = value[last] - value
    left = n - d
    loss = np.divide(ahead, left, out=np.zeros_like(ahead), where=left > 0)
    expected = np.cumsum(before * dk / n**2 - loss * d / n)
    place = table.place
    influence = -expected[np.minimum(place, last)]
    ends = (place <= last) & (events != 0)
    influence[ends] -= loss[place[ends]]
    own = (place <= last) & (events == cause)
    influence[own] += (before / n)[place[own]]
    sums = np.bincount(clusters, weights=influence)
    return float(value[last]), math.sqrt(float((sums**2).sum())), count


def distinct(codes: NDArray[np.int64]) -> int:
    """Return how many different codes there are; they are small whole numbers."""
    return int(np.count_nonzero(np.bincount(codes)))


def cluster_interval(value: float, error: float, clusters: int, confidence: float) -> tuple[float, float] | None:
    """Return an interval of a probability from its standard error over clusters.

    It is Student's on the scale of log(-log), which keeps it between 0 and 1, with one degree less than clusters;
    ``None`` where there are too few, or where the probability is 0 or 1 and the error says nothing.
    """
    if clusters < FEWEST_CLUSTERS or not _ROUNDING < value < 1 - _ROUNDING or error <= 0:
        return None
    error *= math.sqrt(clusters / (clusters - 1))
    wide = float(student.ppf(0.5 + confidence / 2, clusters - 1)) * error / abs(value * math.log(value))
    return value ** math.exp(min(wide, 500.0)), value ** math.exp(-wide)


@dataclass(frozen=True)
class LogRank:
    """Whether groups end by a cause at the same rate.

    Attributes:
        statistic: The log-rank statistic, chi-square if they do and rows are independent.
        p_value: Its p-value.
        degrees: Its degrees of freedom.
        robust_statistic: The same with the variance over clusters; ``None`` where that is not known.
        robust_p_value: Its p-value.
        clusters: The number of clusters.
    """

    statistic: float
    p_value: float
    degrees: int
    robust_statistic: float | None
    robust_p_value: float | None
    clusters: int


def log_rank(
    durations: NDArray[np.float64],
    ended: NDArray[np.bool_],
    groups: NDArray[np.int64],
    clusters: NDArray[np.int64] | None = None,
) -> LogRank | None:
    r"""Compare the rates at which groups end by one cause; rows that end by another count as seen no longer.

    With :math:`d_{gu}` ends among :math:`n_{gu}` at risk, :math:`Z_g = \sum_u d_{gu} - n_{gu} d_u / n_u` has the
    hypergeometric variance if rows are independent. Over clusters, the variance is that of the sums of score
    residuals, as in a Cox model of the groups where nothing differs.

    Source: N. Mantel, Cancer Chemotherapy Reports 50 (1966); D. Y. Lin, L. J. Wei, "The Robust Inference for the Cox
    Proportional Hazards Model", J. American Statistical Association 84 (1989).

    Args:
        durations: For how long each row was seen, ascending.
        ended: Whether it ended by the cause.
        groups: The group of each row, from 0 on.
        clusters: The cluster of each row.

    Returns:
        The test; ``None`` where there are fewer than two groups, or nothing ended.
    """
    present = np.unique(groups)
    if len(present) < 2 or not ended.any():
        return None
    table = risk_table(durations, ended.astype(np.int8), 1)
    n, d = table.at_risk, table.ended[0]
    shares, excess, residuals = [], [], []
    with_share = np.cumsum(d / n)
    for group in present[:-1]:
        mine = groups == group
        here = np.bincount(table.place[mine], minlength=len(n))
        share = here[::-1].cumsum()[::-1] / n
        observed = ended.astype(np.float64) * mine
        excess.append(float(observed.sum() - (share * d).sum()))
        shares.append(share)
        if clusters is not None:
            rows = ended * (mine - share[table.place]) - mine * with_share[table.place]
            rows += np.cumsum(share * d / n)[table.place]
            residuals.append(np.bincount(clusters, weights=rows))
    score = np.asarray(excess)
    spread = np.divide(d * (n - d), n - 1, out=np.zeros_like(d), where=n > 1)
    stacked = np.stack(shares)
    variance = np.diag((stacked * spread).sum(axis=1)) - (stacked * spread) @ stacked.T
    degrees, count = len(present) - 1, 0
    statistic = _quadratic(score, variance)
    robust: float | None = None
    if clusters is not None:
        count = distinct(clusters)
        sums = np.stack(residuals)
        if count >= max(FEWEST_CLUSTERS, 2 * degrees):
            robust = _quadratic(score, sums @ sums.T * count / (count - 1))
    p_robust = None if robust is None else float(chi2.sf(robust, degrees))
    return LogRank(statistic, float(chi2.sf(statistic, degrees)), degrees, robust, p_robust, count)


def _quadratic(score: Floats, variance: Floats) -> float:
    return float(score @ np.linalg.pinv(variance, hermitian=True) @ score)
