"""What the samples of one metric say: a value, its interval, and what that interval is about."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.core.texts import escaped
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import LaunchSamples, MetricSamples, Statistic, System
from deep500.measure.statistics.diagnostics import independence
from deep500.measure.statistics.launches import FEWEST_LAUNCHES, Spread, in_process_interval, nested_interval, spread
from deep500.measure.statistics.means import mean_of
from deep500.measure.statistics.quantiles import Interval, samples_needed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "TIME",
    "Basis",
    "Summary",
    "achieved_flops",
    "check_statistic",
    "launches_needed",
    "mean",
    "summarise",
    "throughput",
]

#: The metric that rates are derived from.
TIME = "WallclockTime"

#: With fewer samples nothing can be said of their correlation.
_FEWEST_FOR_CORRELATION = 10


class Basis(str, enum.Enum):
    """What an interval is about."""

    LAUNCHES = "launches"  #: the next process launch as well
    IN_PROCESS = "in process"  #: the one process that was measured, and no other
    NONE = "none"  #: there is no interval


@dataclass(frozen=True)
class Summary:
    """What the samples of one metric say, in the metric's unit.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 5 and 10.

    Attributes:
        name: The metric's name.
        unit: Its unit.
        kind: What its values are.
        direction: Which values are better.
        estimate: Median over launches of each launch's quantile.
        interval: Its interval; ``None`` when there are too few launches, or samples, for one.
        basis: What the interval is about.
        note: What the interval is, or why there is none, for people.
        launch_values: The quantile of each launch.
        launches: Number of launches.
        samples: Number of samples, all launches together.
        spread: Within and between launches; ``None`` with one launch, or one sample in each.
        converged: Whether the stopping rule was satisfied in every launch; ``None`` when one had none.
        steady: Whether every launch kept one level; ``None`` when one had too few samples to tell.
        warnings: What makes the numbers doubtful, for people.
    """

    name: str
    unit: str
    kind: MetricKind
    direction: Direction
    estimate: float
    interval: Interval | None
    basis: Basis
    note: str
    launch_values: tuple[float, ...]
    launches: int
    samples: int
    spread: Spread | None
    converged: bool | None
    steady: bool | None
    warnings: tuple[str, ...] = ()


def summarise(metric: MetricSamples, statistic: Statistic | None = None) -> Summary:
    """Summarise the samples of a metric; samples of several launches are never pooled.

    Each launch gives one number, its median or another quantile, and the estimate is the median of these numbers. From
    6 launches on its interval is over launches. With one launch the interval is over its samples, and says nothing of
    other launches. With 2 to 5 launches there is none.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 5, 8 and 10.

    Args:
        metric: The samples.
        statistic: Which quantile, and the confidence of the interval; by default the median at 0.95.

    Raises:
        MeasurementError: A launch has too few samples for the quantile (the message says how many are needed), or
            samples are missing, NaN or infinite.

    Example:
        >>> launches = tuple(LaunchSamples(number, (1.0 + number, 3.0 + number)) for number in range(6))
        >>> summary = summarise(MetricSamples("WallclockTime", "s", MetricKind.COST, Direction.LOWER, launches))
        >>> summary.estimate, summary.interval.low, summary.interval.high, summary.basis.value
        (4.5, 2.0, 7.0, 'launches')
    """
    statistic = statistic or Statistic()
    rows = _checked_rows(metric, statistic)
    values = tuple(_quantile(row, statistic.quantile) for row in rows)
    interval, basis, note = _interval(rows, values, statistic)
    estimate = _quantile(np.asarray(values), 0.5)
    if interval is not None:  # its own estimate interpolates, and may differ in the last digit
        interval = dataclasses.replace(interval, estimate=estimate)
    has_spread = len(rows) > 1 and any(len(row) > 1 for row in rows)
    return Summary(
        name=metric.name,
        unit=metric.unit,
        kind=metric.kind,
        direction=metric.direction,
        estimate=estimate,
        interval=interval,
        basis=basis,
        note=note,
        launch_values=values,
        launches=len(rows),
        samples=sum(map(len, rows)),
        spread=spread(rows) if has_spread else None,
        converged=_all(launch.converged for launch in metric.launches),
        steady=_all(launch.steady for launch in metric.launches),
        warnings=tuple(_warnings(metric.launches, basis)),
    )


def throughput(system: System, statistic: Statistic | None = None) -> Summary | None:
    """Return the items per second of a system: those of one run over its time.

    The rate at the median time is the median rate; the ends of the time's interval change places. At another quantile
    of the time, such as 0.95, it is the rate that all but the slowest runs reach.

    Args:
        system: The system.
        statistic: Which quantile of the time; by default the median.

    Returns:
        The rate in ``"<item>s/s"``; ``None`` when the items of a run, or times above 0, are not known.

    Raises:
        MeasurementError: The time cannot be summarised; see :func:`summarise`.
    """
    return _rate(system, system.work.items, "Throughput", f"{system.work.item}s/s", statistic)


def achieved_flops(system: System, statistic: Statistic | None = None) -> Summary | None:
    """Return the floating-point operations per second of a system: those of one run, counted, over its time.

    Args:
        system: The system.
        statistic: Which quantile of the time; by default the median.

    Returns:
        The rate in ``"flop/s"``; ``None`` when the operations of a run, or times above 0, are not known.

    Raises:
        MeasurementError: The time cannot be summarised; see :func:`summarise`.
    """
    return _rate(system, system.work.flops, "AchievedFlops", "flop/s", statistic)


def mean(metric: MetricSamples) -> float:
    """Return the mean over launches of each launch's mean: arithmetic for costs and scores, harmonic for rates.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 3 and 4.

    Raises:
        MeasurementError: The metric is a ratio, which has no mean; or samples are missing, NaN or infinite.
    """
    return mean_of([mean_of(row, metric.kind) for row in _checked_rows(metric, Statistic())], metric.kind)


def launches_needed(confidence: float = 0.95) -> int:
    """Return how many process launches an interval over launches needs."""
    return max(FEWEST_LAUNCHES, samples_needed(0.5, confidence))


def check_statistic(statistic: Statistic) -> None:
    """Check that a statistic can be computed.

    Raises:
        MeasurementError: It is unknown, or its quantile or confidence is not between 0 and 1.
    """
    if statistic.name not in ("median", "quantile") or (statistic.name == "median" and statistic.quantile != 0.5):
        raise MeasurementError(
            f"The statistic {escaped(statistic.name)} with quantile {statistic.quantile!r} is not known; accepted are "
            "the median, with quantile 0.5, and quantile with one between 0 and 1."
        )
    samples_needed(statistic.quantile, statistic.confidence)


def _checked_rows(metric: MetricSamples, statistic: Statistic) -> list[NDArray[np.float64]]:
    check_statistic(statistic)
    name = escaped(metric.name)
    if not metric.launches:
        raise MeasurementError(f"{name} has no launches, so there is nothing to summarise.")
    quantile = statistic.quantile
    needed = 1 if quantile == 0.5 else samples_needed(quantile, statistic.confidence)
    rows = []
    for number, launch in enumerate(metric.launches, 1):
        row = np.asarray(launch.samples, dtype=np.float64)
        unusable = len(row) - int(np.isfinite(row).sum())
        if unusable:
            raise MeasurementError(
                f"{unusable} of {_samples(len(row))} of {name} in launch {number} are NaN or infinite; measure again."
            )
        if not len(row):
            raise MeasurementError(f"{name} has no samples in launch {number}; measure again, or leave it out.")
        if len(row) < needed:
            raise MeasurementError(
                f"{name} has {_samples(len(row))} in launch {number}; the {quantile:.6g} quantile with a "
                f"{_percent(statistic.confidence)} interval needs at least {needed}. Take more samples, or ask for a "
                "quantile nearer to the median."
            )
        rows.append(row)
    return rows


def _quantile(row: NDArray[np.float64], quantile: float) -> float:
    """Return a quantile; the median is the mean of the middle two, to the last digit, as in other tools."""
    return float(np.median(row) if quantile == 0.5 else np.quantile(row, quantile))


def _interval(
    rows: list[NDArray[np.float64]], values: tuple[float, ...], statistic: Statistic
) -> tuple[Interval | None, Basis, str]:
    quantile, confidence = statistic.quantile, statistic.confidence
    what = "median" if quantile == 0.5 else f"{quantile:.6g} quantile"
    percent = _percent(confidence)
    needed = launches_needed(confidence)
    if len(rows) >= needed:
        interval = nested_interval([[value] for value in values], confidence=confidence).interval
        note = f"median of the {what}s of {len(rows)} process launches, with the {percent} interval over launches"
        return interval, Basis.LAUNCHES, note
    if len(rows) > 1:
        note = f"no interval: one of {percent} needs {needed} process launches, and there are {len(rows)}"
        return None, Basis.NONE, note
    least = samples_needed(quantile, confidence)
    size = len(rows[0])
    if size < least:
        note = f"no interval: one of {percent} needs {needed} process launches, and there is 1, of {_samples(size)}"
        return None, Basis.NONE, note
    interval = in_process_interval(rows, quantile=quantile, confidence=confidence)
    note = f"{what} of {_samples(size)} of one process, with the {percent} interval within it; others may differ"
    return interval, Basis.IN_PROCESS, note


def _warnings(launches: tuple[LaunchSamples, ...], basis: Basis) -> Iterable[str]:
    for what, bad in (
        ("did not converge", [launch.stop_reason for launch in launches if launch.converged is False]),
        ("kept no steady level", [launch.steady_reason for launch in launches if launch.steady is False]),
    ):
        if bad:
            reason = f": {bad[0]}" if bad[0] else ""
            yield f"{len(bad)} of {len(launches)} launch{'es' if len(launches) > 1 else ''} {what}{reason}"
    if basis is Basis.IN_PROCESS and len(launches[0].samples) >= _FEWEST_FOR_CORRELATION:
        warning = independence(launches[0].samples).warning
        if warning is not None:
            yield warning


def _rate(system: System, amount: float | None, name: str, unit: str, statistic: Statistic | None) -> Summary | None:
    if amount is None or not amount > 0 or all(metric.name != TIME for metric in system.metrics):
        return None
    time = summarise(system.metric(TIME), statistic)
    ends = (time.estimate,) if time.interval is None else (time.interval.low, time.interval.high)
    if min(*time.launch_values, *ends) <= 0:
        return None
    interval = time.interval
    if interval is not None:
        interval = dataclasses.replace(
            interval, estimate=amount / interval.estimate, low=amount / interval.high, high=amount / interval.low
        )
    return dataclasses.replace(
        time,
        name=name,
        unit=unit,
        kind=MetricKind.RATE,
        direction=Direction.HIGHER,
        estimate=amount / time.estimate,
        interval=interval,
        note=f"{amount:.12g} over the time: {time.note}",
        launch_values=tuple(amount / value for value in time.launch_values),
        spread=None,  # the time's, which is not the rate's
    )


def _all(answers: Iterable[bool | None]) -> bool | None:
    given = set(answers)
    if False in given:
        return False
    return None if None in given else True


def _samples(count: int) -> str:
    return f"{count} sample{'s' if count != 1 else ''}"


def _percent(confidence: float) -> str:
    return f"{confidence * 100:.6g} %"
