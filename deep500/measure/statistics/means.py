"""The right mean of costs, rates and scores; none of ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.metric import MetricKind
from deep500.measure.statistics._samples import finite_samples

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["mean_of"]


def mean_of(values: ArrayLike, kind: MetricKind) -> float:
    r"""Return the mean that fits what the values are.

    Costs and scores: :math:`\frac{1}{n} \sum x_i`. Rates of equal amounts of work: :math:`n / \sum 1 / x_i`, which is
    the work over the mean time. Ratios have none.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 3 and 4.

    Args:
        values: The values, in any unit.
        kind: What they are.

    Raises:
        MeasurementError: They are ratios, not finite, none at all, or rates that are not positive.

    Example:
        >>> mean_of([1.0, 3.0], MetricKind.COST), mean_of([1.0, 3.0], MetricKind.RATE)
        (2.0, 1.5)
    """
    kind = MetricKind(kind)
    if kind is MetricKind.RATIO:
        raise MeasurementError(
            "Ratios are not averaged (SC15, rule 4): the mean depends on which system is the base. Average the costs "
            "(arithmetic mean) or the rates (harmonic mean) of each system, and give one ratio of these with its base."
        )
    row = finite_samples(values, what=f"values of kind {kind.value}")
    if kind is not MetricKind.RATE:
        return float(np.mean(row))
    if row.min() <= 0:
        raise MeasurementError(f"Rates are positive to have a harmonic mean; the smallest is {row.min():.6g}.")
    return float(len(row) / np.sum(1 / row))
