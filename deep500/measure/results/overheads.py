"""What one way of doing the same work costs over another: of one problem, and over many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.results.comparing import compare
from deep500.measure.results.document import Measurement
from deep500.measure.results.summary import Basis, Summary
from deep500.measure.statistics.comparison import Verdict
from deep500.measure.statistics.launches import in_process_interval
from deep500.measure.statistics.quantiles import Interval, quantile_interval, samples_needed

__all__ = ["Overhead", "OverheadOfMany", "median_overhead", "overhead"]


@dataclass(frozen=True, slots=True)
class Overhead:
    """The time of the second system of a measurement over that of the first, its base; they ran round by round.

    Attributes:
        base: Time of the base.
        other: Time of the second system.
        ratio: Time over the base's.
        interval: Interval of the ratio; ``None`` where there are too few launches, or samples, for one.
        basis: What the interval is about: from 6 launches on, the next launch as well; with one, this process alone.
        verdict: ``FASTER`` or ``SLOWER`` where the interval excludes 1.
    """

    base: Summary
    other: Summary
    ratio: float
    interval: Interval | None
    basis: Basis
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class OverheadOfMany:
    """The overheads of many problems, each measured in processes of its own.

    Attributes:
        median: Median of the ratios.
        interval: Its exact interval over the problems; ``None`` where there are fewer than 6.
        faster: Number of problems whose own interval lies below 1.
        slower: Number of those whose interval lies above 1.
        undecided: Number of the others.
    """

    median: float
    interval: Interval | None
    faster: int
    slower: int
    undecided: int


def overhead(measurement: Measurement, *, confidence: float = 0.95) -> Overhead:
    """Return what the second system of a measurement costs over the first.

    From 6 launches on, ratio, interval and verdict are those of
    :func:`deep500.measure.results.comparing.compare`. With fewer, the ratio is the median over launches of the median
    ratio of the rounds; with a single one it has the exact interval of that median within the process.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 5 and 7.

    Args:
        measurement: Two systems that ran round by round in the same processes.
        confidence: Confidence of the interval.

    Raises:
        MeasurementError: These are not two such systems, or they may not be compared.
    """
    if len(measurement.systems) != 2 or measurement.design.pairing != "samples":
        raise MeasurementError(
            f"An overhead is that of one system over another, which ran round by round (pairing samples); there are "
            f"{len(measurement.systems)} systems with the pairing {measurement.design.pairing}."
        )
    report = compare([(measurement, system) for system in measurement.systems], confidence=confidence)
    row, base = report.rows[0], report.base.absolute
    if row.interval is not None:
        return Overhead(base, row.system.absolute, row.ratio, row.interval, Basis.LAUNCHES, row.verdict)
    rows = [_round_ratios(*pair) for pair in zip(*(system.metric().rows for system in measurement.systems))]
    ratio = float(np.median([np.median(ratios) for ratios in rows]))
    if len(rows) > 1 or len(rows[0]) < samples_needed(0.5, confidence):
        return Overhead(base, row.system.absolute, ratio, None, Basis.NONE, Verdict.UNDECIDED)
    interval = in_process_interval(rows, confidence=confidence)
    verdict = Verdict.UNDECIDED
    if not interval.contains(1.0):
        verdict = Verdict.SLOWER if interval.low > 1.0 else Verdict.FASTER
    return Overhead(base, row.system.absolute, ratio, interval, Basis.IN_PROCESS, verdict)


def median_overhead(overheads: Sequence[Overhead], *, confidence: float = 0.95) -> OverheadOfMany:
    """Return the median over problems, with its exact interval where there are enough of them.

    Each problem counts as one value, however long it takes: the median tells what a typical problem costs more. It is
    no mean of ratios, which has no meaning (SC15, rule 4).

    Raises:
        MeasurementError: There are none.
    """
    if not overheads:
        raise MeasurementError("There are no overheads; measure at least one problem.")
    ratios = [each.ratio for each in overheads]
    verdicts = [each.verdict for each in overheads]
    faster, slower = verdicts.count(Verdict.FASTER), verdicts.count(Verdict.SLOWER)
    is_enough = len(ratios) >= samples_needed(0.5, confidence)
    return OverheadOfMany(
        median=float(np.median(ratios)),
        interval=quantile_interval(ratios, 0.5, confidence) if is_enough else None,
        faster=faster,
        slower=slower,
        undecided=len(ratios) - faster - slower,
    )


def _round_ratios(base: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the ratio of each round."""
    if len(base) != len(other):
        raise MeasurementError(
            f"A launch has {len(base)} samples of the base and {len(other)} of the other system; rounds have one of "
            "each."
        )
    return [b / a for a, b in zip(base, other)]
