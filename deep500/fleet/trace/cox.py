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

    def residuals(self, clusters: NDArray[np.int64] | None) -> tuple[Floats, Floats]:
        """Return the sums of score residuals by cluster, and Schoenfeld's residuals, at the last evaluation."""
        size = len(self.starts)
        sums = np.empty((0 if clusters is None else int(clusters.max()) + 1, self.x.shape[1]))
        schoenfeld = np.empty_like(self.mean)
        weight = self.risk * (self.total[self.place] - self.ended * self.part[self.place])
        for column in range(self.x.shape[1]):
            mean = self.mean[:, column]
            average = np.bincount(self.at, weights=mean, minlength=size) / np.maximum(self.deaths, 1)
            schoenfeld[:, column] = self.x_ended[:, column] - average[self.at]
            if clusters is not None:
                drift = np.bincount(self.at, weights=mean / self.phi, minlength=size).cumsum()
                own = np.bincount(self.at, weights=self.fraction * mean / self.phi, minlength=size)
                x = self.x[:, column]
                scores = self.ended * (x - average[self.place]) - weight * x
                scores += self.risk * (drift[self.place] - self.ended * own[self.place])
                sums[:, column] = np.bincount(clusters, weights=scores)
        return sums, schoenfeld


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
    if endless.any():
        without = ", ".join(name for name, far in zip(names, endless) if far)
        raise FleetError(f"No number tells the effect of {without}: it says for certain which rows end this way first.")
    if np.linalg.cond(information) > 1e10:
        raise FleetError(f"The covariates {', '.join(names)} say the same in other words; leave one out.")
    variance = np.linalg.inv(information)
    sums, schoenfeld = problem.residuals(clusters)
    naive, robust, influences, count = np.sqrt(np.diag(variance)), np.sqrt(np.diag(variance)), sums, 0
    if clusters is not None:
        count = distinct(clusters)
        influences = sums @ variance
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
        influences=influences / scale if count else influences,
        schoenfeld=schoenfeld * scale,
        event_times=durations[ended],
    )


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
        statistic: The statistic, chi-square with one degree if it does and rows are independent.
        p_value: Its p-value.
    """

    name: str
    statistic: float
    p_value: float


def proportionality(fit: CoxFit) -> tuple[Proportionality, ...]:
    r"""Test each covariate's effect for a trend over the order of ends, by scaled Schoenfeld residuals.

    :math:`T_j = \big(\sum_e (g_e - \bar g)\, r^*_{ej}\big)^2 \big/ \big(D\, V_{jj} \sum_e (g_e - \bar g)^2\big)` with
    :math:`r^* = D\, r V`, :math:`D` ends and :math:`g` their rank in time (the mean of ties).

    Source: P. M. Grambsch, T. M. Therneau, Biometrika 81 (1994).
    """
    ranks = np.arange(1, fit.events + 1, dtype=np.float64)
    new = np.concatenate([[True], np.diff(fit.event_times) != 0])
    group = np.cumsum(new) - 1
    ranks = (np.bincount(group, weights=ranks) / np.bincount(group))[group]
    trend = ranks - ranks.mean()
    scaled = fit.events * (trend @ fit.schoenfeld) @ fit.variance
    spread = fit.events * np.diag(fit.variance) * float(trend @ trend)
    statistics = np.divide(scaled**2, spread, out=np.zeros_like(spread), where=spread > 0)
    return tuple(
        Proportionality(name, float(value), float(chi2.sf(value, 1))) for name, value in zip(fit.names, statistics)
    )
