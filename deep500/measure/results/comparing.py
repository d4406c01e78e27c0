"""Comparing systems of one or several measurements: ratios with intervals, their base, and verdicts."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from deep500._version import __version__
from deep500.core.errors import MeasurementError
from deep500.core.texts import escaped
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.compatibility import FactorDifference, check_comparable, is_one_measurement, metric_of
from deep500.measure.results.document import Measurement, MetricSamples, Pairing, ProcessRecord, Statistic, System
from deep500.measure.results.report import ComparedSystem, ComparisonReport, ComparisonRow, ManyCompared, Source
from deep500.measure.results.summary import Summary, check_statistic, launches_needed, summarise
from deep500.measure.statistics.comparison import Comparison, Verdict, paired_log_ratio, unpaired_log_ratio
from deep500.measure.statistics.multiple import compare_many, holm
from deep500.measure.statistics.quantiles import Interval

__all__ = ["compare", "process_key"]


def compare(
    entries: Sequence[tuple[Measurement, System | str]],
    *,
    metric: str | None = None,
    margin: float | None = None,
    confidence: float = 0.95,
    allow_unknown: bool = False,
    sources: Sequence[Source | None] | None = None,
) -> ComparisonReport:
    """Compare systems with the first of them, the base.

    A ratio is taken over the values of process launches, one number each: pair by pair where both systems come from one
    measurement that interleaved them (the median ratio of their rounds, where they shared processes), else side by
    side. With fewer than 6 launches of either there is no interval, and the verdict is undecided. Of several systems,
    "faster" and "slower" are said only after Holm's correction, and "equivalent" at the confidence that Bonferroni asks
    for.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 1, 5 and 7.

    Args:
        entries: Measurements, each with one of its systems or the label of one.
        metric: Name of the metric that is compared; by default the first of the base.
        margin: Relative difference that does not matter, such as 0.01; by default what all measurements declared.
        confidence: Confidence of every interval, between 0 and 1.
        allow_unknown: Whether data that is known of one system only is listed as a difference instead of refused.
        sources: The file of each entry, for the report.

    Raises:
        MeasurementError: The systems may not be compared (see :func:`check_comparable`), are fewer than two, share
            process launches, or have values without a ratio.
    """
    found = _resolved(entries, sources)
    _check_separate(found)
    metric = _checked_kind(metric_of(found[0].system, metric)).name
    warnings = list(_warnings(found))
    margin = _declared_margin(found, warnings) if margin is None else margin
    if margin is not None and not (isinstance(margin, (int, float)) and 0 < margin < math.inf):
        raise MeasurementError(f"A margin is a positive relative difference, such as 0.01; it is {margin!r}.")
    statistic = replace(found[0].measurement.design.statistic, confidence=confidence)
    _check_statistic(statistic)
    base = found[0]
    factors = [
        check_comparable(
            (base.measurement, base.system), (each.measurement, each.system), metric, allow_unknown=allow_unknown
        )
        for each in found[1:]
    ]
    sides = [_Side(each, summarise(metric_of(each.system, metric), statistic), metric) for each in found]
    _check_positive(sides)
    return ComparisonReport(
        deep500=__version__,
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds"),
        statistic=statistic,
        margin=margin,
        base=sides[0].compared,
        rows=_rows(sides, factors, margin, confidence),
        many=_many(sides, confidence),
        warnings=tuple(warnings),
    )


def process_key(process: ProcessRecord) -> tuple[str, float, float]:
    """Return what tells a process launch from every other."""
    return process.started, process.setup_s, process.run_s


@dataclass(frozen=True)
class _Entry:
    """A system of a measurement, under a label that is unique among those that are compared."""

    measurement: Measurement
    system: System
    source: Source | None
    own_label: str

    @property
    def processes(self) -> set[tuple[str, float, float]]:
        """The processes of its samples."""
        indices = {launch.process for metric in self.system.metrics for launch in metric.launches}
        return {process_key(self.measurement.processes[index]) for index in indices}


@dataclass(frozen=True)
class _Side:
    """One side of a ratio."""

    entry: _Entry
    summary: Summary
    metric: str

    @property
    def compared(self) -> ComparedSystem:
        """What the report says of it."""
        system = self.entry.system
        return ComparedSystem(
            system.label, system.spec, system.configuration_hash, self.summary, system.scores, self.entry.source
        )

    @property
    def processes(self) -> list[int]:
        """The process of each launch."""
        return [launch.process for launch in self.entry.system.metric(self.metric).launches]


def _resolved(
    entries: Sequence[tuple[Measurement, System | str]], sources: Sequence[Source | None] | None
) -> list[_Entry]:
    if len(entries) < 2:
        raise MeasurementError(
            f"There {'is 1 system' if entries else 'are no systems'} to compare; a ratio needs its base: give two "
            "systems or more, in one file or in several."
        )
    if sources is not None and len(sources) != len(entries):
        raise MeasurementError(f"{len(sources)} sources were given for {len(entries)} systems; give one for each.")
    found = []
    for (measurement, system), source in zip(entries, sources or [None] * len(entries)):
        if isinstance(system, str):
            labels = [each.label for each in measurement.systems]
            if system not in labels:
                raise MeasurementError(
                    f"The measurement has no system {escaped(system)!r}; it has {', '.join(map(escaped, labels))}."
                )
            system = measurement.system(system)
        found.append(_Entry(measurement, system, source, system.label))
    labels = _unique_labels(found)
    return [replace(entry, system=replace(entry.system, label=label)) for entry, label in zip(found, labels)]


def _unique_labels(entries: list[_Entry]) -> list[str]:
    """Return labels that tell the systems apart: by their file where they are called the same, else by number."""
    labels = [entry.system.label for entry in entries]
    named = [
        f"{label} ({PurePath(entry.source.path).name})" if labels.count(label) > 1 and entry.source else label
        for label, entry in zip(labels, entries)
    ]
    return [label if named.count(label) == 1 else f"{label} #{number}" for number, label in enumerate(named, 1)]


def _check_separate(entries: list[_Entry]) -> None:
    """Refuse samples that are on both sides of a ratio."""
    for number, entry in enumerate(entries):
        for other in entries[:number]:
            is_same = is_one_measurement(entry.measurement, other.measurement)
            if is_same and entry.own_label == other.own_label:
                raise MeasurementError(
                    f"{escaped(other.system.label)} and {escaped(entry.system.label)} are the same samples, given "
                    "twice. To compare a workload with itself, measure it twice."
                )
            if not is_same and entry.processes & other.processes:
                raise MeasurementError(
                    f"{escaped(other.system.label)} and {escaped(entry.system.label)} share process launches, as a "
                    "merged file does with its parts. Compare measurements that have none in common."
                )


def _checked_kind(metric: MetricSamples) -> MetricSamples:
    if metric.kind in (MetricKind.COST, MetricKind.RATE):
        return metric
    reason = (
        "a ratio of ratios has no base" if metric.kind is MetricKind.RATIO else "scores have a difference, not a ratio"
    )
    raise MeasurementError(
        f"{escaped(metric.name)} is a {metric.kind.value}, and {reason}. Compare a cost or a rate, such as seconds."
    )


def _check_statistic(statistic: Statistic) -> None:
    check_statistic(statistic)
    # Below, the two one-sided tests of a margin would have their ends the wrong way round.
    if statistic.confidence <= 0.5:
        raise MeasurementError(f"The confidence is {statistic.confidence!r}; accepted: above 0.5, such as 0.95.")


def _check_positive(sides: list[_Side]) -> None:
    for side in sides:
        if min(side.summary.launch_values) <= 0:
            raise MeasurementError(
                f"{escaped(side.entry.system.label)} has values of {escaped(side.summary.name)} that are not positive, "
                "so they have no ratio. Let one run do more."
            )


def _declared_margin(entries: list[_Entry], warnings: list[str]) -> float | None:
    """Return the margin that all measurements declared; none where they disagree."""
    margins = {entry.measurement.design.margin for entry in entries}
    if len(margins) > 1:
        told = ", ".join(sorted("none" if margin is None else f"{margin:.6g}" for margin in margins))
        warnings.append(f"the measurements declared different margins ({told}), so none is used; state one")
        return None
    return margins.pop()


def _warnings(entries: list[_Entry]) -> Iterator[str]:
    for entry in entries:
        label = escaped(entry.system.label)
        if not entry.measurement.complete:
            yield f"{label}: the measurement is incomplete: {escaped(entry.measurement.failure or 'no reason given')}"
        for score in entry.system.scores:
            if score.acceptable is None:
                continue
            higher = score.direction is Direction.HIGHER
            if not (score.value >= score.acceptable if higher else score.value <= score.acceptable):
                yield (
                    f"{label}: {escaped(score.name)} is {score.value:.6g} {escaped(score.unit)}, worse than the "
                    f"acceptable {score.acceptable:.6g}, so how fast it is matters little"
                )


def _rows(
    sides: list[_Side], factors: list[tuple[FactorDifference, ...]], margin: float | None, confidence: float
) -> tuple[ComparisonRow, ...]:
    base, others = sides[0], sides[1:]
    needed = launches_needed(confidence)
    pairings = [_pairing(base, side) for side in others]
    tested: dict[int, Comparison] = {
        index: _compared(base, side, pairing, confidence, None)
        for index, (side, pairing) in enumerate(zip(others, pairings))
        if min(base.summary.launches, side.summary.launches) >= needed
    }
    adjusted = _adjusted(list(tested.values()))
    rows = []
    for index, (side, pairing) in enumerate(zip(others, pairings)):
        row = ComparisonRow(
            system=side.compared,
            ratio=side.summary.estimate / base.summary.estimate,
            interval=None,
            p_value=None,
            p_holm=None,
            verdict=Verdict.UNDECIDED,
            pairing=pairing,
            factors=factors[index],
            note=_too_few(base.summary, side.summary, needed),
        )
        if index in tested:
            comparison, p_holm = tested[index], adjusted[list(tested).index(index)]
            family = 1 - (1 - confidence) / len(tested)
            is_equivalent = margin is not None and _is_equivalent(base, side, pairing, family, margin)
            verdict, note = _verdict(comparison, p_holm, is_equivalent, (len(tested), confidence))
            if is_equivalent and margin is not None:
                note = _equivalence_note(_compared(base, side, pairing, 2 * family - 1, None).ratio, margin)
            if pairing == "samples" and _contradicts_medians(comparison, base, side, confidence):
                verdict = Verdict.UNDECIDED
                note = "the rounds and the medians of the launches disagree: the samples of a round are not alike"
            row = replace(
                row,
                ratio=comparison.ratio.estimate,
                interval=comparison.ratio,
                p_value=comparison.p_value,
                p_holm=p_holm,
                verdict=verdict,
                note=note,
            )
        rows.append(row)
    return tuple(rows)


def _pairing(base: _Side, side: _Side) -> Pairing:
    """Return how the launches of two systems belong together."""
    pairing = base.entry.measurement.design.pairing
    if pairing == "none" or not is_one_measurement(base.entry.measurement, side.entry.measurement):
        return "none"
    if pairing == "samples" and base.processes != side.processes:
        return "none"
    return pairing if len(base.processes) == len(side.processes) else "none"


def _compared(base: _Side, side: _Side, pairing: Pairing, confidence: float, margin: float | None) -> Comparison:
    compare_two = unpaired_log_ratio if pairing == "none" else paired_log_ratio
    values = side.summary.launch_values
    if pairing == "samples" and base.entry.measurement.design.statistic.quantile == 0.5:
        values = _values_of_rounds(base, side)
    return compare_two(
        values,
        base.summary.launch_values,
        confidence,
        margin=margin,
        direction=side.summary.direction,
    )


def _values_of_rounds(base: _Side, side: _Side) -> tuple[float, ...]:
    r"""Return the value of each launch by its rounds, :math:`b_i \exp(\mathrm{med}_j \log(a_{ij} / b_{ij}))`.

    What disturbs a launch for a while disturbs both samples of a round, so that their ratio tells more than the ratio
    of the two medians. In launches beside other load, these ratios spread over a third as much.
    """
    tables = [each.entry.system.metric(each.metric).rows for each in (side, base)]
    values = list(side.summary.launch_values)
    for index, (row, base_row) in enumerate(zip(*tables)):
        if len(row) == len(base_row) and min(*row, *base_row) > 0:
            ratio = float(np.exp(np.median(np.log(row) - np.log(base_row))))
            values[index] = base.summary.launch_values[index] * ratio
    return tuple(values)


def _contradicts_medians(rounds: Comparison, base: _Side, side: _Side, confidence: float) -> bool:
    """Whether the interval of the rounds' ratios and that of the launch medians have nothing in common.

    A median of ratios is not the ratio of the medians where the times go up and down, each system at another round.
    """
    medians = paired_log_ratio(side.summary.launch_values, base.summary.launch_values, confidence).ratio
    return rounds.ratio.low > medians.high or rounds.ratio.high < medians.low


def _adjusted(comparisons: list[Comparison]) -> list[float]:
    """Return the p-values corrected for their number."""
    if not comparisons:
        return []
    return [float(value) for value in holm([comparison.p_value for comparison in comparisons]).adjusted]


def _is_equivalent(base: _Side, side: _Side, pairing: Pairing, confidence: float, margin: float) -> bool:
    """Whether a system is equivalent at the confidence that all rows together need; not so with too few launches."""
    if min(base.summary.launches, side.summary.launches) < launches_needed(confidence):
        return False
    return _compared(base, side, pairing, confidence, margin).verdict is Verdict.EQUIVALENT


def _verdict(
    comparison: Comparison, p_holm: float, is_equivalent: bool, of_all: tuple[int, float]
) -> tuple[Verdict, str]:
    count, confidence = of_all
    if is_equivalent:
        return Verdict.EQUIVALENT, ""
    # For one row the interval decides: it excludes 1 exactly when the p-value is small enough.
    if comparison.verdict is not Verdict.UNDECIDED and count > 1 and p_holm > 1 - confidence:
        note = f"the interval excludes 1, but p = {p_holm:.2g} after Holm's correction for {count} comparisons"
        return Verdict.UNDECIDED, f"{note}; take more launches"
    return comparison.verdict, ""


def _equivalence_note(interval: Interval, margin: float) -> str:
    """Return why a system is equivalent though its interval at full confidence may pass the margin."""
    return (
        f"equivalent by two one-sided tests: the {(interval.confidence_requested) * 100:.6g} % interval of the ratio, "
        f"{interval.low:.4g} .. {interval.high:.4g}, lies within {1 / (1 + margin):.4g} .. {1 + margin:.4g}"
    )


def _too_few(base: Summary, other: Summary, needed: int) -> str:
    note = (
        f"{needed} process launches of each are needed for an interval of the ratio; there are {other.launches} of "
        f"this and {base.launches} of the base"
    )
    if 1 in (base.launches, other.launches):
        note += ", and samples of one process do not tell what the next would give"
    return note


def _many(sides: list[_Side], confidence: float) -> ManyCompared | None:
    values = {side.entry.system.label: side.summary.launch_values for side in sides}
    is_constant = len({value for row in values.values() for value in row}) == 1
    if len(sides) < 3 or is_constant or min(map(len, values.values())) < launches_needed(confidence):
        return None
    found = compare_many(values, confidence)
    return ManyCompared(found.statistic, found.p_value, found.pairs)
