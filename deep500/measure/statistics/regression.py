"""Quantile regression: what each factor adds to a quantile of the samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog
from scipy.special import stdtrit

from deep500.core.errors import MeasurementError
from deep500.measure.statistics._samples import check_confidence, finite_samples
from deep500.measure.statistics.quantiles import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

__all__ = ["INTERCEPT", "QuantileRegression", "quantile_regression"]

#: Name of the coefficient of all factors at 0 or at their base level.
INTERCEPT = "(base)"

#: Ends of intervals are found to this share of their distance from the estimate.
PRECISION = 2e-3


@dataclass(frozen=True, slots=True)
class QuantileRegression:
    """A quantile as a sum of what factors add.

    Attributes:
        coefficients: By name: ``(base)``; a numeric factor, per unit of it; ``factor[level]``, against the base level.
        base_levels: The base level of each factor that has levels.
        quantile: The quantile.
        samples: Number of samples.
    """

    coefficients: dict[str, Interval]
    base_levels: dict[str, str]
    quantile: float
    samples: int


def quantile_regression(
    response: ArrayLike, factors: Mapping[str, ArrayLike], quantile: float = 0.5, confidence: float = 0.95
) -> QuantileRegression:
    r"""Explain a quantile of the response by factors.

    :math:`\hat\beta = \arg\min_\beta \sum_i \rho_q(y_i - x_i^T \beta)` with :math:`\rho_q(u) = u (q - [u < 0])`, solved
    as a linear program (HiGHS). The interval of a coefficient holds the values that the rank-score test does not
    reject: those for which :math:`|\tilde x^T (a - (1 - q))| \le t_{n-p} \sqrt{q (1-q)}\, \lVert\tilde x\rVert`, where
    :math:`a` are the regression rank scores without the coefficient's column and :math:`\tilde x` is that column
    without what the others explain. It asks for no normality and no seed, but for errors that are independent and
    alike at all levels; so regress launch medians rather than samples that share launches.

    Source: R. Koenker, G. Bassett, "Regression Quantiles", Econometrica 46 (1978); C. Gutenbrunner, J. Jurečková,
    R. Koenker, S. Portnoy, "Tests of linear hypotheses based on regression rank scores", J. Nonparametric Statistics 2
    (1993); T. Hoefler, R. Belli, SC15, rules 8 and 9.

    Args:
        response: The samples, in any unit.
        factors: One row for each factor: numbers, or names of levels of which the first in order is the base.
        quantile: The quantile, between 0 and 1.
        confidence: Confidence of each interval.

    Raises:
        MeasurementError: Lengths differ, factors explain each other, or the samples are too few for the quantile.
    """
    y = finite_samples(response, what="samples of the response")
    check_confidence(confidence)
    if not 0 < quantile < 1:
        raise MeasurementError(f"A quantile lies between 0 and 1, such as 0.5 for the median; it is {quantile!r}.")
    columns, base_levels = _columns(factors, len(y))
    design = np.column_stack([np.ones(len(y)), *columns.values()])
    names = [INTERCEPT, *columns]
    needed = math.ceil(5 * len(names) / min(quantile, 1 - quantile) - 1e-9)
    if len(y) < needed:
        raise MeasurementError(
            f"{len(names)} coefficients of the {quantile:.6g} quantile need at least {needed} samples, 5 beyond the "
            f"quantile for each; there are {len(y)}."
        )
    if np.linalg.matrix_rank(design) < len(names):
        raise MeasurementError(
            f"The factors {', '.join(columns)} explain each other, or one is constant: what each adds cannot be told."
        )
    scale = float(np.ptp(y)) or 1.0  # the solver's tolerances are absolute
    fit = _RankInversion(y / scale, design, quantile, confidence)
    coefficients = {}
    for column, name in enumerate(names):
        low, high = fit.ends(column, name)
        estimate = float(fit.estimates[column])
        coefficients[name] = Interval(estimate * scale, low * scale, high * scale, confidence, confidence, exact=False)
    return QuantileRegression(coefficients, base_levels, quantile, len(y))


class _RankInversion:
    """Intervals of coefficients by inversion of the rank-score test."""

    def __init__(self, y: NDArray[np.float64], design: NDArray[np.float64], quantile: float, confidence: float) -> None:
        self.y, self.design, self.quantile = y, design, quantile
        self.estimates, _ = _solve(y, design, quantile)
        self.critical = float(stdtrit(len(y) - design.shape[1], (1 + confidence) / 2))

    def ends(self, column: int, name: str) -> tuple[float, float]:
        """Return the ends of the interval of a coefficient."""
        x = self.design[:, column]
        others = np.delete(self.design, column, axis=1)
        alone = x - others @ np.linalg.lstsq(others, x, rcond=None)[0]
        spread = math.sqrt(self.quantile * (1 - self.quantile)) * float(np.linalg.norm(alone))

        def is_rejected(value: float) -> bool:
            _, scores = _solve(self.y - value * x, others, self.quantile)
            return abs(float(alone @ (scores - (1 - self.quantile)))) / spread > self.critical

        estimate = float(self.estimates[column])
        residuals = self.y - self.design @ self.estimates
        step = float(np.std(residuals)) / float(np.linalg.norm(alone)) or 1e-9
        return self._end(estimate, -step, is_rejected, name), self._end(estimate, step, is_rejected, name)

    def _end(self, inside: float, step: float, is_rejected: Callable[[float], bool], name: str) -> float:
        """Return the first rejected value in the direction of ``step``, rounded outwards."""
        start = inside
        outside = start + step
        for _ in range(40):
            if is_rejected(outside):
                break
            inside, step = outside, 2 * step
            outside = start + step
        else:
            raise MeasurementError(f"The samples are too few for an interval of the coefficient {name}.")
        while abs(outside - inside) > PRECISION * abs(outside - start):
            middle = (inside + outside) / 2
            if is_rejected(middle):
                outside = middle
            else:
                inside = middle
        return outside


def _solve(
    y: NDArray[np.float64], design: NDArray[np.float64], quantile: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coefficients and the rank scores: maximise ``y a`` where ``X'a = (1 - q) X'1`` and 0 <= a <= 1."""
    solution = linprog(
        -y, A_eq=design.T, b_eq=(1 - quantile) * design.sum(axis=0), bounds=(0.0, 1.0), method="highs-ds"
    )
    if solution.status != 0:
        raise MeasurementError(f"The quantile regression could not be solved: {solution.message}")
    return -np.asarray(solution.eqlin.marginals, dtype=np.float64), np.asarray(solution.x, dtype=np.float64)


def _columns(factors: Mapping[str, ArrayLike], size: int) -> tuple[dict[str, NDArray[np.float64]], dict[str, str]]:
    """Return one column for each numeric factor and each level but the base, and the base levels."""
    if not factors:
        raise MeasurementError("There is no factor; the quantile alone is what quantile_interval gives.")
    columns: dict[str, NDArray[np.float64]] = {}
    base_levels = {}
    for name, values in factors.items():
        row = np.asarray(values)
        if row.shape != (size,):
            raise MeasurementError(f"Factor {name} has shape {row.shape}; there are {size} samples of the response.")
        if row.dtype.kind in "iuf":
            columns[name] = finite_samples(row, what=f"values of factor {name}")
            continue
        levels = sorted({str(level) for level in row})
        base_levels[name] = levels[0]
        texts = row.astype(str)
        for level in levels[1:]:
            columns[f"{name}[{level}]"] = (texts == level).astype(np.float64)
    return columns, base_levels
