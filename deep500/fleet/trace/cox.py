"""Cox's model of the rate at which tasks end by one cause, with errors over clusters, for millions of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from scipy.stats import t as student

from deep500.core.errors import FleetError
from deep500.fleet.trace.survival import distinct, risk_table

__all__ = ["CoxFit", "Proportionality", "fit_cox", "proportionality"]

Floats = NDArray[np.float64]

#: The search ends with the step whose gain of twice the likelihood is as small: a ten-thousandth of an error.
_STEPS, _HALVINGS, _TOLERANCE = 40, 20, 1e-8

#: A last step as large, or a coefficient as far from 0 (in standard deviations), is that of an effect without an end.
_ENDLESS, _FARTHEST = 0.1, 50.0

#: From so many rows on, the search begins where a sample of a fiftieth ends: the same result in fewer steps.
_MANY, _FIRST = 200_000, 50


@dataclass(frozen=True)
class CoxFit:
    """A fitted model: the rate is ``exp(coefficients . x)`` times one of time alone.

    Attributes:
        names: The covariates.
        coefficients: Their coefficients; a rate is multiplied by ``exp`` of one for each unit.
        naive: Standard errors if rows are independent.
        robust: Standard errors over clusters; equal to ``naive`` where there are none.
        rows: The number of rows.
        events: How many of them ended by the cause.
        clusters: The number of clusters; 0 where there are none.
        log_likelihood: The partial log-likelihood.
        converged: Whether the search came to an end.
        variance: The variance if rows are independent.
        influences: The sums of each cluster's influences on the coefficients: ``[clusters, covariates]``.
        trends: The same of the trends of coefficients over the order of ends, by which :func:`proportionality` tells.
        schoenfeld: Schoenfeld's residuals ``[events, covariates]`` in the order of time, and the times.
        event_times: When each ended.
    """

    names: tuple[str, ...]
    coefficients: Floats
    naive: Floats
    robust: Floats
    rows: int
    events: int
    clusters: int
    log_likelihood: float
    converged: bool
    variance: Floats
    influences: Floats
    trends: Floats
    schoenfeld: Floats
    event_times: Floats

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Return the ends of the coefficients' intervals: Student's over clusters."""
        wide = critical(self.clusters, confidence) * self.robust
        return self.coefficients - wide, self.coefficients + wide

    @property
    def p_values(self) -> Floats:
        """p-values of each coefficient being 0, over clusters."""
        degrees = self.clusters - 1 if self.clusters else math.inf
        errors = np.where(self.robust > 0, self.robust, np.nan)
        return np.asarray(np.nan_to_num(2 * student.sf(np.abs(self.coefficients) / errors, degrees), nan=1.0))


def critical(clusters: int, confidence: float) -> float:
    """Return how many standard errors an interval reaches; without clusters those of the normal distribution."""
    return float(student.ppf(0.5 + confidence / 2, clusters - 1 if clusters else math.inf))


class _Problem:
    """The partial likelihood with Efron's ties, on rows that ascend in time."""

    def __init__(self, durations: Floats, ended: NDArray[np.bool_], x: Floats) -> None:
        self.x, self.ended = x, ended
        table = risk_table(durations, ended.astype(np.int8), 1)
        self.place, self.deaths = table.place, table.ended[0].astype(np.int64)
        self.starts = np.concatenate([[0], np.flatnonzero(np.diff(self.place)) + 1])
        self.at = self.place[ended]
        first = np.concatenate([[0], np.cumsum(self.deaths)[:-1]])
        self.fraction = (np.arange(len(self.at)) - first[self.at]) / self.deaths[self.at]
        self.x_ended = np.asfortranarray(x[ended])

    def evaluate(self, beta: Floats) -> tuple[float, Floats, Floats]:
        """Return the log-likelihood, its gradient and its negative second derivative."""
        eta = self.x @ beta
        eta -= eta.max()
        self.risk = np.exp(eta)
        size = len(self.starts)
        whole = np.add.reduceat(self.risk, self.starts)[::-1].cumsum()[::-1]
        dying = np.bincount(self.at, weights=self.risk[self.ended], minlength=size)
        self.phi = whole[self.at] - self.fraction * dying[self.at]
        self.mean = np.empty_like(self.x_ended)
        for column in range(self.x.shape[1]):
            weighted = self.risk * self.x[:, column]
            sums = np.add.reduceat(weighted, self.starts)[::-1].cumsum()[::-1]
            lost = np.bincount(self.at, weights=weighted[self.ended], minlength=size)
            self.mean[:, column] = (sums[self.at] - self.fraction * lost[self.at]) / self.phi
        self.total = np.bincount(self.at, weights=1 / self.phi, minlength=size).cumsum()
        self.part = np.bincount(self.at, weights=self.fraction / self.phi, minlength=size)
        weight = self.risk * (self.total[self.place] - self.ended * self.part[self.place])
        information = self.x.T @ (self.x * weight[:, None]) - self.mean.T @ self.mean
        value = float(eta[self.ended].sum() - np.log(self.phi).sum())
        return value, (self.x_ended - self.mean).sum(axis=0), information

    def schoenfeld(self) -> Floats:
        """Return Schoenfeld's residuals at the last evaluation: each end's covariates less their mean at risk."""
        size = len(self.starts)
        residuals = np.empty_like(self.mean)
        for column in range(self.x.shape[1]):
            sums = np.bincount(self.at, weights=self.mean[:, column], minlength=size)
            residuals[:, column] = self.x_ended[:, column] - (sums / np.maximum(self.deaths, 1))[self.at]
        return residuals

    def scores(self, clusters: NDArray[np.int64], factor: Floats | None = None) -> Floats:
        """Return the sums of score residuals by cluster at the last evaluation.

        Args:
            clusters: The cluster of each row.
            factor: What each distinct time is weighed with; by default 1.
        """
        size = len(self.starts)
        sums = np.empty((int(clusters.max()) + 1, self.x.shape[1]))
        weights = (np.ones(size) if factor is None else factor)[self.at]
        of_row = 1.0 if factor is None else factor[self.place]
        total = np.bincount(self.at, weights=weights / self.phi, minlength=size).cumsum()
        part = np.bincount(self.at, weights=weights * self.fraction / self.phi, minlength=size)
        weight = self.risk * (total[self.place] - self.ended * part[self.place])
        for column in range(self.x.shape[1]):
            mean, x = self.mean[:, column], self.x[:, column]
            average = np.bincount(self.at, weights=mean, minlength=size) / np.maximum(self.deaths, 1)
            drift = np.bincount(self.at, weights=weights * mean / self.phi, minlength=size).cumsum()
            own = np.bincount(self.at, weights=weights * self.fraction * mean / self.phi, minlength=size)
            rows = self.ended * of_row * (x - average[self.place]) - weight * x
            rows += self.risk * (drift[self.place] - self.ended * own[self.place])
            sums[:, column] = np.bincount(clusters, weights=rows)
        return sums

    def trend(self) -> Floats:
        """Return the rank of each distinct time among the ends (the mean of ties), less the mean of ends."""
        before = np.cumsum(self.deaths) - self.deaths
        rank = before + (self.deaths + 1) / 2
        return np.asarray(rank - (len(self.at) + 1) / 2, dtype=np.float64)


def fit_cox(
    durations: NDArray[np.float64],
    ended: NDArray[np.bool_],
    covariates: NDArray[np.float64],
    names: Sequence[str],
    clusters: NDArray[np.int64] | None = None,
) -> CoxFit:
    r"""Fit :math:`\lambda(t \mid x) = \lambda_0(t)\, e^{\beta \cdot x}` by the partial likelihood with Efron's ties.

    Rows that end by another cause count as seen no longer: the rate is that of one cause while others compete. The
    errors over clusters are those of the sums of influences :math:`I^{-1} U_i`, with the score residuals :math:`U_i`,
    times :math:`\sqrt{G / (G - 1)}` for :math:`G` clusters.

    Source: D. R. Cox, J. Royal Statistical Society B 34 (1972); B. Efron, J. American Statistical Association 72
    (1977); D. Y. Lin, L. J. Wei, J. American Statistical Association 84 (1989).

    Args:
        durations: For how long each row was seen, ascending.
        ended: Whether it ended by the cause.
        covariates: ``[rows, covariates]``, all known.
        names: Their names.
        clusters: The cluster of each row.

    Raises:
        FleetError: Nothing ended, the covariates say the same (one is a sum of others), or one of them tells for
            certain who ends, so that its effect is without bounds.
    """
    x, scale = _standardised(durations, ended, covariates, names)
    beta = np.zeros(x.shape[1])
    if len(x) >= _MANY and ended[::_FIRST].sum() > 10 * x.shape[1]:
        beta, *_ = _search(_Problem(durations[::_FIRST], ended[::_FIRST], x[::_FIRST]), beta)
    problem = _Problem(durations, ended, x)
    beta, value, information, converged, endless = _search(problem, beta)
    _check_bounded(names, endless, information)
    variance = np.linalg.inv(information)
    naive = robust = np.sqrt(np.diag(variance))
    influences = trends = np.empty((0, len(names)))
    count = 0
    if clusters is not None:
        count = distinct(clusters)
        influences = problem.scores(clusters) @ variance
        trends = problem.scores(clusters, problem.trend()) @ variance
        robust = np.sqrt((influences**2).sum(axis=0) * count / max(count - 1, 1))
    return CoxFit(
        names=tuple(names),
        coefficients=beta / scale,
        naive=naive / scale,
        robust=robust / scale,
        rows=len(x),
        events=int(ended.sum()),
        clusters=count,
        log_likelihood=value,
        converged=converged,
        variance=variance / np.outer(scale, scale),
        influences=influences / scale,
        trends=trends / scale,
        schoenfeld=problem.schoenfeld() * scale,
        event_times=durations[ended],
    )


def _check_bounded(names: Sequence[str], endless: NDArray[np.bool_], information: Floats) -> None:
    if endless.any():
        without = ", ".join(name for name, far in zip(names, endless) if far)
        raise FleetError(f"No number tells the effect of {without}: it says for certain which rows end this way first.")
    if np.linalg.cond(information) > 1e10:
        raise FleetError(f"The covariates {', '.join(names)} say the same in other words; leave one out.")


def _standardised(
    durations: Floats, ended: NDArray[np.bool_], covariates: Floats, names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Check what a model is given; return the covariates with mean 0 and deviation 1, and their deviations."""
    if not ended.any():
        raise FleetError("No row ended by the cause: a Cox model has nothing to learn from.")
    if len(durations) > 1 and np.any(np.diff(durations) < 0):
        raise FleetError("The durations of a Cox model are to ascend; sort all rows by them.")
    scale, spread = covariates.std(axis=0), np.ptp(covariates, axis=0)
    if np.any(spread == 0):
        raise FleetError(f"The covariate {names[int(np.argmin(spread))]!r} is the same in all rows; leave it out.")
    return np.asfortranarray((covariates - covariates.mean(axis=0)) / scale), scale  # columns are worked on one by one


def _search(problem: _Problem, beta: Floats) -> tuple[Floats, float, Floats, bool, NDArray[np.bool_]]:
    """Return where Newton's steps end, the log-likelihood and information there, whether they ended, what runs away.

    A coefficient runs away where a covariate tells for certain who ends first, or never: the likelihood rises ever less
    and steps stay as large as they are.
    """
    value, gradient, information = problem.evaluate(beta)
    for _ in range(_STEPS):
        step = np.linalg.lstsq(information, gradient, rcond=None)[0]
        if float(gradient @ step) < _TOLERANCE:
            return beta + step, value, information, True, np.abs(step) > _ENDLESS
        for _ in range(_HALVINGS):
            tried = problem.evaluate(beta + step)
            if tried[0] >= value - 1e-12 * abs(value):
                break
            step = step / 2
        beta = beta + step
        value, gradient, information = tried
        if np.abs(beta).max() > _FARTHEST:
            break
    return beta, value, information, False, np.abs(beta) > _FARTHEST


@dataclass(frozen=True)
class Proportionality:
    """Whether the effect of a covariate stays the same as time goes by.

    Attributes:
        name: The covariate.
        statistic: The statistic, chi-square with one degree if it does, over clusters where there are some.
        p_value: Its p-value.
    """

    name: str
    statistic: float
    p_value: float


def proportionality(fit: CoxFit) -> tuple[Proportionality, ...]:
    r"""Test each covariate's effect for a trend over the order of ends, by scaled Schoenfeld residuals.

    :math:`T_j = \big(\sum_e (g_e - \bar g)\, (r_e V)_j\big)^2 \big/ s_j` with Schoenfeld's residuals :math:`r`, the
    variance :math:`V` and the rank :math:`g` of ends in time (the mean of ties). If rows are independent,
    :math:`s_j = V_{jj} \sum_e (g_e - \bar g)^2 / D` for :math:`D` ends. Over clusters, :math:`s_j` is the sum over them
    of squared sums of :math:`\big(\int (g - \bar g)\, dU_i\, V\big)_j`, the score residuals weighed by the rank, times
    :math:`G / (G - 1)`: rows of one cluster that end alike would look like a trend otherwise.

    Source: P. M. Grambsch, T. M. Therneau, Biometrika 81 (1994); D. Y. Lin, L. J. Wei, J. American Statistical
    Association 84 (1989).
    """
    ranks = np.arange(1, fit.events + 1, dtype=np.float64)
    new = np.concatenate([[True], np.diff(fit.event_times) != 0])
    group = np.cumsum(new) - 1
    ranks = (np.bincount(group, weights=ranks) / np.bincount(group))[group]
    trend = ranks - ranks.mean()
    scaled = (trend @ fit.schoenfeld) @ fit.variance
    if fit.clusters:
        spread = (fit.trends**2).sum(axis=0) * fit.clusters / max(fit.clusters - 1, 1)
    else:
        spread = np.diag(fit.variance) * float(trend @ trend) / fit.events
    statistics = np.divide(scaled**2, spread, out=np.zeros_like(spread), where=spread > 0)
    return tuple(
        Proportionality(name, float(value), float(chi2.sf(value, 1))) for name, value in zip(fit.names, statistics)
    )
