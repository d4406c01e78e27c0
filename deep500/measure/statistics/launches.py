"""Samples nested by process launch: what a published interval is made from, and how launches differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.statistics._samples import finite_samples
from deep500.measure.statistics.quantiles import Interval, quantile_interval, samples_needed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["FEWEST_LAUNCHES", "NestedInterval", "Spread", "in_process_interval", "nested_interval", "spread"]

#: A published interval needs at least as many process launches.
FEWEST_LAUNCHES = 6


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the spread of nested samples comes from, in their unit.

    Attributes:
        within: Standard deviation within a launch.
        between: Standard deviation of what launches add, 0 when launches differ no more than samples do.
        between_share: Share of the variance that launches add, 0 to 1 (the intraclass correlation).
    """

    within: float
    between: float
    between_share: float


@dataclass(frozen=True, slots=True)
class NestedInterval:
    """A quantile over process launches.

    Attributes:
        interval: The median over launches of each launch's quantile, with its interval over launches.
        launch_values: The quantile of each launch.
        quantile: Which quantile was taken within launches.
        spread: Within and between launches; ``None`` where no launch has two samples.
    """

    interval: Interval
    launch_values: tuple[float, ...]
    quantile: float
    spread: Spread | None


def nested_interval(
    launches: Sequence[ArrayLike], *, quantile: float = 0.5, confidence: float = 0.95
) -> NestedInterval:
    """Summarise samples of several process launches by an interval over the launches.

    Each launch gives one number, its median (or another quantile); the interval is that of the median of these
    numbers. Samples are never pooled: those of one process share memory layout, clock and neighbours, and in a
    simulation of 10 launches of 100 samples with 2 % spread between launches the nominal 95 % interval of the pooled
    samples covered 48 %, that over launches 98 %.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 5 and 10;
    T. Kalibera, R. Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013.

    Args:
        launches: The samples of each launch, in any unit; their numbers may differ.
        quantile: Quantile within a launch; other ones than the median need enough samples in each launch.
        confidence: The confidence, between 0 and 1.

    Raises:
        MeasurementError: There are too few launches, or too few samples in one for its quantile.
    """
    needed = max(FEWEST_LAUNCHES, samples_needed(0.5, confidence))
    if len(launches) < needed:
        raise MeasurementError(
            f"A published interval of confidence {confidence:.6g} needs at least {needed} process launches; there are "
            f"{len(launches)}. Launch more often, or give in_process_interval and say that it is one."
        )
    least = 1 if quantile == 0.5 else samples_needed(quantile, confidence)
    rows = [
        finite_samples(row, least=least, what=f"samples of launch {number}, for its {quantile:.6g} quantile")
        for number, row in enumerate(launches, 1)
    ]
    values = [float(np.quantile(row, quantile)) for row in rows]
    return NestedInterval(
        interval=quantile_interval(values, 0.5, confidence),
        launch_values=tuple(values),
        quantile=quantile,
        spread=_spread(rows) if any(len(row) > 1 for row in rows) else None,
    )


def in_process_interval(launches: Sequence[ArrayLike], *, quantile: float = 0.5, confidence: float = 0.95) -> Interval:
    """Return the interval of a quantile within the only launch there is. It says nothing of other launches.

    Args:
        launches: One launch: a sequence that holds one row of samples.
        quantile: The quantile.
        confidence: The confidence, between 0 and 1.

    Raises:
        MeasurementError: There are several launches, which are not pooled; or too few samples.
    """
    if len(launches) != 1:
        raise MeasurementError(
            f"Samples of {len(launches)} launches are not pooled into one interval, which would be far too narrow "
            "(95 % in name, 48 % in a simulation of 10 launches). Use nested_interval, or one launch at a time."
        )
    return quantile_interval(finite_samples(launches[0]), quantile, confidence)


def spread(launches: Sequence[ArrayLike]) -> Spread:
    r"""Return how much samples differ within launches and between launches.

    One-way analysis of variance with random launches: with the mean squares :math:`M_w` within and :math:`M_b`
    between launches, :math:`\sigma_w^2 = M_w` and :math:`\sigma_b^2 = \max(0, (M_b - M_w) / n_0)`, where
    :math:`n_0 = (N - \sum n_i^2 / N) / (k - 1)`. It describes and tests nothing, so it asks for no normality; single
    outliers count as spread.

    Source: S. R. Searle, G. Casella, C. E. McCulloch, "Variance Components", 1992, section 3.6.

    Raises:
        MeasurementError: There are fewer than two launches, or no launch has two samples.
    """
    rows = [finite_samples(row, what=f"samples of launch {number}") for number, row in enumerate(launches, 1)]
    if len(rows) < 2 or all(len(row) < 2 for row in rows):
        raise MeasurementError(
            f"The spread within and between launches needs two launches, and two samples in one; there are {len(rows)} "
            f"launches of at most {max(map(len, rows), default=0)} samples."
        )
    return _spread(rows)


def _spread(rows: list[NDArray[np.float64]]) -> Spread:
    sizes = np.array([len(row) for row in rows], dtype=np.float64)
    means = np.array([row.mean() for row in rows])
    total, count = sizes.sum(), len(rows)
    grand = (sizes * means).sum() / total
    within = sum(float(((row - mean) ** 2).sum()) for row, mean in zip(rows, means)) / (total - count)
    mean_square = float((sizes * (means - grand) ** 2).sum()) / (count - 1)
    effective = (total - (sizes**2).sum() / total) / (count - 1)
    between = max(0.0, float((mean_square - within) / effective))
    share = between / (between + within) if between > 0 else 0.0
    return Spread(math.sqrt(within), math.sqrt(between), float(share))
