"""Checks before an interval is believed: normality before that of a mean, independence before any."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import fft, stats
from scipy.special import stdtrit

from deep500.core.errors import MeasurementError
from deep500.measure.statistics._samples import check_confidence, finite_samples
from deep500.measure.statistics.quantiles import Interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "FEWEST_FOR_MEAN",
    "Independence",
    "Normality",
    "autocorrelation",
    "effective_sample_size",
    "independence",
    "mean_interval",
    "normality",
]

#: With fewer samples the test of normality sees next to nothing, so the interval of a mean is refused.
FEWEST_FOR_MEAN = 20

#: Royston's approximation of the Shapiro-Wilk p-value was made for up to this many samples.
MAXIMUM_SHAPIRO = 5000


@dataclass(frozen=True, slots=True)
class Normality:
    """Whether samples may be normal.

    Attributes:
        test: Name of the test.
        statistic: Its statistic.
        p_value: Its p-value.
        level: Level of the test.
    """

    test: str
    statistic: float
    p_value: float
    level: float

    @property
    def rejected(self) -> bool:
        """Whether the samples are surely not normal; if not, they may still be something else."""
        return self.p_value <= self.level


@dataclass(frozen=True, slots=True)
class Independence:
    """Whether samples may be independent of those taken before.

    Attributes:
        lag_1: Correlation of each sample with the one before.
        threshold: Correlations above it are not chance (two standard deviations of independent samples).
        samples: Number of samples.
        effective_samples: As many independent samples would say as much about the mean.
        warning: What to say beside an interval of these samples; ``None`` when they may be independent.
    """

    lag_1: float
    threshold: float
    samples: int
    effective_samples: float
    warning: str | None


def normality(samples: ArrayLike, level: float = 0.05) -> Normality:
    """Test whether samples may be normal, by Shapiro and Wilk; above 5000 samples by D'Agostino and Pearson.

    Source: S. S. Shapiro, M. B. Wilk, Biometrika 52 (1965), with the p-value of P. Royston, Applied Statistics 44
    (1995); R. B. D'Agostino, E. S. Pearson, Biometrika 60 (1973); T. Hoefler, R. Belli, SC15, rule 6.

    Raises:
        MeasurementError: There are fewer than 8 samples, too few to see anything, or they are all equal.
    """
    row = finite_samples(samples, least=8)
    _check_varies(row)
    if len(row) <= MAXIMUM_SHAPIRO:
        result = stats.shapiro((row - np.median(row)) / np.ptp(row))  # a large offset would cost its digits
        return Normality("Shapiro-Wilk", float(result.statistic), float(result.pvalue), level)
    result = stats.normaltest(row)
    return Normality("D'Agostino-Pearson", float(result.statistic), float(result.pvalue), level)


def mean_interval(
    samples: ArrayLike, confidence: float = 0.95, *, level: float = 0.05, force: bool = False
) -> Interval:
    r"""Return the mean of normal samples with the interval :math:`\bar x \pm t_{1 - \alpha/2, n-1}\, s / \sqrt n`.

    Refused when the samples are not normal: a nominal 95 % interval over 100 samples of a lognormal distribution with
    σ = 1 held the median, which such an interval is usually read as, in 3 %. Passing the test is no proof.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 5 and 6.

    Args:
        samples: The samples, in any unit.
        confidence: The confidence, between 0 and 1.
        level: Level of the test of normality.
        force: Do not refuse; the interval then rests on the central limit theorem alone.

    Raises:
        MeasurementError: The samples are not normal, too few, or all equal.
    """
    row = finite_samples(samples, least=2 if force else FEWEST_FOR_MEAN)
    check_confidence(confidence)
    _check_varies(row)
    if not force:
        test = normality(row, level)
        if test.rejected:
            raise MeasurementError(
                f"The {len(row)} samples are not normal ({test.test}, p = {test.p_value:.2g}), so the interval of "
                "their mean is not to be trusted (SC15, rule 6). Give the median with quantile_interval."
            )
    mean = float(row.mean())
    half = float(stdtrit(len(row) - 1, (1 + confidence) / 2)) * float(row.std(ddof=1)) / math.sqrt(len(row))
    return Interval(mean, mean - half, mean + half, confidence, confidence, exact=False)


def autocorrelation(samples: ArrayLike) -> NDArray[np.float64]:
    r"""Return the correlation of samples with those ``lag`` later, for lags 0 to n - 1.

    :math:`\rho_k = \sum_{i} (x_i - \bar x)(x_{i+k} - \bar x) \big/ \sum_i (x_i - \bar x)^2`, by FFT. Samples that are
    all equal have none but that at lag 0.
    """
    row = finite_samples(samples, least=2)
    centred = row - row.mean()
    spectrum = fft.rfft(centred, fft.next_fast_len(2 * len(row)))
    products = fft.irfft(np.abs(spectrum) ** 2, fft.next_fast_len(2 * len(row)))[: len(row)]
    if np.ptp(row) == 0:
        products = np.zeros(len(row))
        products[0] = 1.0
    return np.asarray(products / products[0], dtype=np.float64)


def effective_sample_size(samples: ArrayLike) -> float:
    r"""Return how many independent samples would say as much about the mean.

    :math:`n \big/ \left(-1 + 2 \sum_{m=0}^{M} \Gamma_m\right)` with :math:`\Gamma_m = \rho_{2m} + \rho_{2m+1}` and
    :math:`M` the last before :math:`\Gamma` is first negative (the initial positive sequence). Never more than n.

    Source: C. J. Geyer, "Practical Markov Chain Monte Carlo", Statistical Science 7 (1992).
    """
    rho = autocorrelation(samples)
    size = len(rho)
    sums = rho[: size // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(sums <= 0)
    positive = sums[: ends[0]] if len(ends) else sums
    time = -1 + 2 * float(positive.sum())
    return float(size / max(1.0, time))


def independence(samples: ArrayLike) -> Independence:
    """Check whether samples, in the order in which they were taken, may be independent.

    Intervals of correlated samples are too narrow: with a correlation of 0.5 between neighbours, the nominal 95 %
    interval of the median covered 82 to 87 %, with 0.9 it covered 41 to 46 %. The threshold is two standard
    deviations of the correlation that independent samples show, ``2 / sqrt(n)``.

    Raises:
        MeasurementError: There are fewer than 10 samples.
    """
    row = finite_samples(samples, least=10)
    lag_1 = float(autocorrelation(row)[1])
    threshold = 2 / math.sqrt(len(row))
    effective = effective_sample_size(row)
    warning = None
    if lag_1 > threshold:
        warning = (
            f"Neighbouring samples are correlated ({lag_1:.2f}; chance gives up to {threshold:.2f}): {len(row)} "
            f"samples say as much as {effective:.0f} independent ones, and an interval from them is too "
            "narrow. Take it over launches."
        )
    return Independence(lag_1, threshold, len(row), effective, warning)


def _check_varies(row: NDArray[np.float64]) -> None:
    if np.ptp(row) == 0:
        raise MeasurementError(
            f"All {len(row)} samples are {row[0]:.6g}: report the value, it needs no interval (SC15, rule 5)."
        )
