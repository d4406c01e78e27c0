"""What the launches of a scaling run say: step times, efficiencies against the base case, and where the time goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.comparison import FEWEST_SAMPLES, paired_log_ratio
from deep500.measure.statistics.launches import FEWEST_LAUNCHES, in_process_interval, nested_interval
from deep500.measure.statistics.quantiles import samples_needed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from deep500.distributed.scaling.design import ScalingDesign
    from deep500.distributed.scaling.step_measurement import LaunchMeasurement

__all__ = ["Estimate", "MeasuredPoint", "RankSummary", "summarise_launches", "summarise_scaling"]


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval, where there are enough samples for one.

    Attributes:
        value: The estimate.
        low: Lower end of the interval, or ``None``.
        high: Upper end of the interval, or ``None``.
        basis: What the interval is over: ``"launches"``, ``"steps of one launch"`` (which says nothing of other
            launches), or ``"none"``.
    """

    value: float
    low: float | None = None
    high: float | None = None
    basis: str = "none"

    def over(self, amount: float) -> Estimate:
        """Return an amount divided by this: a rate of a time."""
        low = None if self.high is None else amount / self.high
        high = None if self.low is None else amount / self.low
        return Estimate(amount / self.value, low, high, self.basis)

    def times(self, factor: float) -> Estimate:
        """Return it in another unit."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return Estimate(self.value * factor, low, high, self.basis)


@dataclass(frozen=True)
class RankSummary:
    """One rank's part of a step.

    Attributes:
        rank: The rank.
        compute_s: What it computed.
        exchange_s: How long exchanges were under way.
        exposed_s: How long it waited for exchanges.
        imbalance_s: How much less it computed than the slowest rank.
        lead_s: How much earlier it waited for others than the last rank did; the ends include what the ranks' clocks
            may differ by.
        clock_offset_s: Bounds of its clock against that of rank 0, the widest of all launches.
        bytes_a_step: Bytes a step by what they are: sent, received, and of the callers' buffers.
    """

    rank: int
    compute_s: Estimate
    exchange_s: Estimate
    exposed_s: Estimate
    imbalance_s: Estimate
    lead_s: Estimate
    clock_offset_s: tuple[float, float]
    bytes_a_step: Mapping[str, float]


@dataclass(frozen=True)
class MeasuredPoint:
    """A step on a number of ranks.

    Attributes:
        ranks: How many.
        samples: Samples of a step on all ranks together.
        step_s: Time of the step on the rank for which it takes longest.
        samples_per_s: Samples of all ranks together.
        efficiency: Against the base case: strong ``p0 T(p0) / (p T(p))``, weak ``T(p0) / T(p)``.
        speedup: Efficiency times ``p / p0``.
        oversubscribed: Whether the ranks have more threads than the machine has processors for them.
        by_rank: Each rank's part.
    """

    ranks: int
    samples: int
    step_s: Estimate
    samples_per_s: Estimate
    efficiency: Estimate
    speedup: Estimate
    oversubscribed: bool
    by_rank: tuple[RankSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def summarise_launches(launches: Sequence[ArrayLike]) -> Estimate:
    """Return the median of samples that were taken in launches, with the interval that they allow.

    Args:
        launches: The samples of each launch.

    Raises:
        MeasurementError: There is no sample.
    """
    rows = [np.asarray(row, np.float64) for row in launches]
    if not rows or not all(len(row) for row in rows):
        raise MeasurementError("Launches without a sample were to be summarised; take one sample or more in each.")
    if len(rows) >= FEWEST_LAUNCHES:
        interval = nested_interval(rows).interval
        return Estimate(interval.estimate, interval.low, interval.high, "launches")
    if len(rows) == 1 and len(rows[0]) >= samples_needed():
        interval = in_process_interval(rows)
        return Estimate(interval.estimate, interval.low, interval.high, "steps of one launch")
    return Estimate(float(np.median([np.median(row) for row in rows])))


def summarise_scaling(
    launches: Mapping[int, Sequence[LaunchMeasurement]], design: ScalingDesign, batch_size: int
) -> list[MeasuredPoint]:
    """Return a point for each number of ranks.

    Efficiencies compare launches in pairs: those of one round, which ran next to each other. Where a run broke off,
    those that have no other one in their round are left out of it, and the base case is the least number of ranks that
    was measured.

    Args:
        launches: What was measured by number of ranks, one launch or more each, in the order of the rounds.
        design: The settings of the run.
        batch_size: The recipe's.
    """
    medians = {ranks: [float(np.median(launch.slowest_s)) for launch in taken] for ranks, taken in launches.items()}
    base = min(launches)
    points = []
    for ranks, taken in sorted(launches.items()):
        step = summarise_launches([launch.slowest_s for launch in taken])
        samples = batch_size * (ranks if design.mode == "weak" else 1)
        growth = ranks / base
        ratio = Estimate(1.0) if ranks == base else _ratio(medians[base], medians[ranks])
        efficiency = ratio if design.mode == "weak" else ratio.times(1 / growth)
        points.append(
            MeasuredPoint(
                ranks,
                samples,
                step,
                step.over(samples),
                efficiency,
                efficiency.times(growth),
                design.oversubscribed(ranks),
                _by_rank(taken),
            )
        )
    return points


def _ratio(base_s: Sequence[float], other_s: Sequence[float]) -> Estimate:
    """Return the ratio of the base's times to others', from the rounds that have both."""
    rounds = min(len(base_s), len(other_s))
    if rounds >= FEWEST_SAMPLES:
        found = paired_log_ratio(base_s[:rounds], other_s[:rounds]).ratio
        return Estimate(found.estimate, found.low, found.high, "launches")
    return Estimate(float(np.median(base_s) / np.median(other_s)))


def _by_rank(launches: Sequence[LaunchMeasurement]) -> tuple[RankSummary, ...]:
    """Return each rank's part, over launches."""
    tables = [launch.split.times_s() for launch in launches]
    imbalances = [launch.split.imbalance_s() for launch in launches]
    summaries = []
    for rank in range(launches[0].ranks):
        parts = [summarise_launches([table[:, rank, part] for table in tables]) for part in range(3)]
        least, most = (summarise_launches([launch.leads_s[end][:, rank] for launch in launches]) for end in (0, 1))
        offsets = [launch.clock_offsets[rank] for launch in launches]
        counted = {name: _mean([launch.bytes_a_step[rank][name] for launch in launches]) for name in _names(launches)}
        summaries.append(
            RankSummary(
                rank,
                parts[0],
                parts[1],
                parts[2],
                imbalance_s=summarise_launches([imbalance[:, rank] for imbalance in imbalances]),
                lead_s=Estimate((least.value + most.value) / 2, least.low, most.high, least.basis),
                clock_offset_s=(min(offset.low_s for offset in offsets), max(offset.high_s for offset in offsets)),
                bytes_a_step=counted,
            )
        )
    return tuple(summaries)


def _names(launches: Sequence[LaunchMeasurement]) -> list[str]:
    return list(launches[0].bytes_a_step[0])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
