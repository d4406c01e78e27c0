"""What pictures show of each system: its samples in a readable unit, their summary, its name and its colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.core.texts import escaped
from deep500.measure.metric import Direction
from deep500.measure.results.summary import Basis, Summary, summarise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.measure.results.document import Measurement, MetricSamples

__all__ = ["ShownMetric", "ShownSystem", "plain", "shown_metric"]

#: Colours that people with any colour vision tell apart, and that are dark enough on white; after the last, again.
#: Source: M. Okabe, K. Ito, "Color Universal Design", 2008.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

#: Units of which larger or smaller ones are written, each with its factors.
_UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "B": ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB")),
    "flop/s": ((1.0, "flop/s"), (1e6, "Mflop/s"), (1e9, "Gflop/s"), (1e12, "Tflop/s")),
}

#: Longest line of a name beside an axis, in characters, and most lines; and the longest name in one line.
_LINE, _LINES, _LONGEST = 36, 3, 60


@dataclass(frozen=True)
class ShownSystem:
    """One system as a picture shows it, in the picture's unit.

    Attributes:
        label: Its name in one line.
        name: Its name in a few short lines.
        count: Its launches and samples, in words.
        value: Its value, in words.
        interval: The value's interval, in words.
        rows: The samples of each launch, in the order in which they were taken.
        launch_values: The value of each launch.
        estimate: The value of all launches.
        ends: The ends of its interval; ``None`` for none.
        colour: Its colour.
    """

    label: str
    name: str
    count: str
    value: str
    interval: str
    rows: tuple[NDArray[np.float64], ...]
    launch_values: NDArray[np.float64]
    estimate: float
    ends: tuple[float, float] | None
    colour: str

    @property
    def samples(self) -> NDArray[np.float64]:
        """All samples."""
        return np.concatenate(self.rows)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The share of each sample of :attr:`samples`: launches count the same, however many samples they have."""
        return np.concatenate([np.full(len(row), 1 / (len(row) * len(self.rows))) for row in self.rows])


@dataclass(frozen=True)
class ShownMetric:
    """What a picture shows.

    Attributes:
        systems: The systems, the base first.
        label: What the axis shows, its unit and which values are better.
        statistic: What stands for the samples of a launch: ``"median"`` or ``"p95"``.
        quantile: The same as a number.
        confidence: Confidence of the intervals, in words: ``"95 %"``.
        origin: Where the numbers come from.
        is_complete: Whether all that was planned was run.
    """

    systems: tuple[ShownSystem, ...]
    label: str
    statistic: str
    quantile: float
    confidence: str
    origin: str
    is_complete: bool

    @property
    def has_launches(self) -> bool:
        """Whether a system was measured in more than one launch."""
        return any(len(system.rows) > 1 for system in self.systems)

    @property
    def meaning(self) -> str:
        """What the marked value of each system is, for the legend."""
        has_interval = any(system.ends is not None for system in self.systems)
        interval = f", with its {self.confidence} interval" if has_interval else ""
        if self.has_launches:
            return f"{self.statistic} over launches{interval}"
        return f"{self.statistic} of one process{interval}; other processes may differ"


def shown_metric(measurement: Measurement, metric: str | None) -> ShownMetric:
    """Return what a picture shows of a metric, the first one without a name.

    Raises:
        MeasurementError: A system lacks the metric, or has it in another unit; or the samples cannot be summarised.
    """
    found = _samples_of(measurement, metric)
    statistic = measurement.design.statistic
    summaries = [summarise(samples, statistic) for samples in found]
    factor, unit = _unit(found[0].unit, [summary.estimate for summary in summaries])
    what = "median" if statistic.quantile == 0.5 else f"p{statistic.quantile * 100:.6g}"
    confidence = f"{statistic.confidence * 100:.6g} %"
    systems = tuple(
        _shown(system.label, samples, summary, (factor, unit, what, confidence), _COLOURS[number % len(_COLOURS)])
        for number, (system, samples, summary) in enumerate(zip(measurement.systems, found, summaries))
    )
    better = "lower is better" if found[0].direction is Direction.LOWER else "higher is better"
    label = f"{plain(found[0].name)}{f' in {unit}' if unit else ''}, {better}"
    return ShownMetric(
        systems, label, what, statistic.quantile, confidence, _origin(measurement), bool(measurement.complete)
    )


def plain(text: str, lines: int = 1, line: int = _LONGEST) -> str:
    """Return a text in a few short lines, without control characters, in which no ``$`` begins a formula.

    Args:
        text: The text.
        lines: Most lines.
        line: Longest line, in characters; lines end behind commas, colons and the like where there are some.
    """
    rest = " ".join(escaped(text).split())
    found: list[str] = []
    while len(rest) > line and len(found) < lines - 1:
        ends = [index for index, character in enumerate(rest[:line], 1) if character in " ,:;@/._-="]
        end = ends[-1] if ends and ends[-1] > line // 2 else line
        found.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    found.append(rest if len(rest) <= line else f"{rest[: line - 1]}…")
    return "\n".join(found).replace("$", r"\$")


def _samples_of(measurement: Measurement, metric: str | None) -> list[MetricSamples]:
    if not measurement.systems or not all(system.metrics for system in measurement.systems):
        raise MeasurementError("A picture needs a system with a metric; the measurement has one without, or none.")
    name = measurement.systems[0].metric().name if metric is None else metric
    found = []
    for system in measurement.systems:
        try:
            found.append(system.metric(name))
        except KeyError:
            known = ", ".join(escaped(one.name) for one in system.metrics)
            raise MeasurementError(
                f"{escaped(system.label)} has no metric {name!r}; accepted are those of every system. It has: {known}."
            ) from None
    units = sorted({samples.unit for samples in found})
    if len(units) > 1:
        raise MeasurementError(f"{name!r} is in {' and in '.join(map(repr, units))}; one picture shows one unit.")
    return found


def _shown(
    label: str, samples: MetricSamples, summary: Summary, words: tuple[float, str, str, str], colour: str
) -> ShownSystem:
    factor, unit, what, confidence = words
    sizes = [len(row) for row in samples.rows]
    few, many = min(sizes), max(sizes)
    each = f"{few} sample{'s' if few != 1 else ''}" if few == many else f"{few} to {many} samples"
    launches = "1 process" if summary.launches == 1 else f"{summary.launches} launches"
    interval = summary.interval
    ends = None if interval is None else (interval.low / factor, interval.high / factor)
    where = " in process" if summary.basis is Basis.IN_PROCESS else ""
    told = "no interval" if ends is None else f"{confidence} CI{where} {ends[0]:.4g} to {ends[1]:.4g}"
    return ShownSystem(
        label=plain(label) or "?",
        name=plain(label, _LINES, _LINE) or "?",
        count=f"{launches} × {each}",
        value=f"{what} {summary.estimate / factor:.4g} {unit}".rstrip(),
        interval=told,
        rows=tuple(np.asarray(row, dtype=np.float64) / factor for row in samples.rows),
        launch_values=np.asarray(summary.launch_values) / factor,
        estimate=summary.estimate / factor,
        ends=ends,
        colour=colour,
    )


def _unit(unit: str, values: list[float]) -> tuple[float, str]:
    """Return the unit in which the smallest of the values has a digit or more before the point, and its factor."""
    steps = _UNITS.get(unit)
    smallest = min((abs(value) for value in values if value), default=0.0)
    if steps is None or not smallest:
        return 1.0, plain(unit)
    return next((step for step in reversed(steps) if smallest >= step[0]), steps[0])


def _origin(measurement: Measurement) -> str:
    sections = measurement.environment.get("sections")
    cpu = sections.get("cpu") if isinstance(sections, dict) else None
    model = cpu.get("model") if isinstance(cpu, dict) else None
    parts = [f"Deep500 {measurement.deep500}", measurement.started.replace("T", " ")[:16] + " UTC"]
    parts += [model] if isinstance(model, str) and model != "unavailable" else []
    parts += [] if measurement.complete else [f"INCOMPLETE: {measurement.failure}"]
    return plain(" | ".join(parts), line=140)
