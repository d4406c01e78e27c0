"""Making one measurement of several: launches of the same system together, systems that differ side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.texts import escaped
from deep500.measure.results.comparing import process_key
from deep500.measure.results.compatibility import FactorDifference, aligned, check_comparable, conditions, same, scalar
from deep500.measure.results.document import Design, Measurement, MetricSamples, System
from deep500.measure.workload import Scalar

__all__ = ["merge", "side_by_side"]

#: A label names so many of the factors that tell its system apart.
_MOST_FACTORS = 3


def merge(measurements: Sequence[Measurement], *, allow_unknown: bool = False) -> Measurement:
    """Merge measurements of one workload.

    Systems of the same label, configuration, metrics and environment are one system with the launches of all. All
    others stay separate; where they share a label, what differs is added to it. Conditions that differ between the
    measurements (environment, sampling plan) become factors of the systems, so that none is hidden: the environment
    record of the result is that of the first. What was interleaved stays paired only where every measurement has all
    systems.

    Args:
        measurements: Two or more, all to be merged in one call.
        allow_unknown: Whether data that is known of one system only is a difference instead of a reason to refuse.

    Raises:
        MeasurementError: They are fewer than two, share process launches, or have different workloads, data, metrics
            or statistics; or launches to be joined are of the caller's own process, which may be one for all.

    Example:
        ``merge([read_measurement("monday.json"), read_measurement("tuesday.json")])``
    """
    if len(measurements) < 2:
        raise MeasurementError(f"Two measurements or more are needed to merge; there are {len(measurements)}.")
    _check_separate(measurements)
    parts = [
        _Part(number, measurement, system)
        for number, measurement in enumerate(measurements)
        for system in measurement.systems
    ]
    first = parts[0]
    for part in parts[1:]:
        _differences(first, part, allow_unknown)
    groups = _grouped(parts, allow_unknown)
    varying = _varying(parts)
    starts = _starts(measurements)
    systems = _labelled([_joined(group, starts, varying) for group in groups])
    is_whole = all(len(group) == len(measurements) for group in groups)
    return _combined(measurements, systems, _design(measurements, groups, is_whole))


def side_by_side(entries: Sequence[tuple[Measurement, System]]) -> Measurement:
    """Put systems of several measurements into one as they are, for a picture of all.

    Args:
        entries: Measurements, each with one of its systems, under labels that differ.
    """
    measurements: list[Measurement] = []
    for measurement, _ in entries:
        if not any(measurement is other for other in measurements):
            measurements.append(measurement)
    starts = _starts(measurements)
    systems = []
    for measurement, system in entries:
        number = next(index for index, other in enumerate(measurements) if other is measurement)
        systems.append(replace(system, metrics=tuple(_shifted(each, starts[number]) for each in system.metrics)))
    design = measurements[0].design
    if len(measurements) > 1:
        design = replace(design, pairing="none")
    return _combined(measurements, systems, design)


@dataclass(frozen=True)
class _Part:
    """A system of one of the measurements, which are counted from 0."""

    number: int
    measurement: Measurement
    system: System

    @property
    def conditions(self) -> dict[str, Any]:
        return conditions(self.measurement, self.system)


def _check_separate(measurements: Sequence[Measurement]) -> None:
    seen: dict[tuple[str, float, float], int] = {}
    for number, measurement in enumerate(measurements, 1):
        for process in measurement.processes:
            other = seen.setdefault(process_key(process), number)
            if other != number:
                raise MeasurementError(
                    f"Measurements {other} and {number} share the process launch of {escaped(process.started)}: the "
                    "same file was given twice, or a merged one with its part. Samples must not count twice."
                )


def _differences(first: _Part, second: _Part, allow_unknown: bool) -> tuple[FactorDifference, ...]:
    """Return all in which two systems differ; refuse those that may not be merged."""
    names = [[metric.name for metric in part.system.metrics] for part in (first, second)]
    if sorted(names[0]) != sorted(names[1]):
        told = [", ".join(map(escaped, each)) for each in names]
        raise MeasurementError(
            f"{escaped(first.system.label)} and {escaped(second.system.label)} cannot be merged: their metrics differ, "
            f"they are {told[0]} and {told[1]}. Measure the same metrics."
        )
    found: tuple[FactorDifference, ...] = ()
    for name in names[0]:
        found = check_comparable(
            (first.measurement, first.system), (second.measurement, second.system), name, allow_unknown=allow_unknown
        )
    return found


def _grouped(parts: Sequence[_Part], allow_unknown: bool) -> list[list[_Part]]:
    """Return which parts are one system. Systems of one measurement never are, even where nothing differs."""
    groups: list[list[_Part]] = []
    for part in parts:
        for group in groups:
            last = group[-1]
            if last.number == part.number or last.system.label != part.system.label:
                continue
            if last.system.configuration_hash == part.system.configuration_hash and not _differences(
                last, part, allow_unknown
            ):
                _check_fresh(last, part)
                group.append(part)
                break
        else:
            groups.append([part])
    return groups


def _check_fresh(*parts: _Part) -> None:
    for part in parts:
        if not part.conditions["fresh process"]:
            raise MeasurementError(
                f"The samples of {escaped(part.system.label)} are of the process of whoever called, so nobody knows "
                "whether those of two measurements are of two processes. Measure it as a text, such as "
                "'package.module:function', which gets fresh processes."
            )


def _varying(parts: Sequence[_Part]) -> dict[int, dict[str, Scalar]]:
    """Return the conditions that are not the same everywhere, for each measurement."""
    found = {part.number: part.conditions for part in parts}
    rows = aligned(list(found.values()))
    names = [name for name in sorted(rows[0]) if _varies([row[name] for row in rows])]
    return {number: {name: scalar(row[name]) for name in names} for number, row in zip(found, rows)}


def _varies(values: Sequence[Any]) -> bool:
    return not all(same(values[0], value) for value in values[1:])


def _starts(measurements: Sequence[Measurement]) -> list[int]:
    """Return the index that the first process of each measurement gets."""
    starts = [0]
    for measurement in measurements:
        starts.append(starts[-1] + len(measurement.processes))
    return starts


def _shifted(metric: MetricSamples, start: int) -> MetricSamples:
    return replace(
        metric, launches=tuple(replace(launch, process=launch.process + start) for launch in metric.launches)
    )


def _joined(group: Sequence[_Part], starts: Sequence[int], varying: dict[int, dict[str, Scalar]]) -> System:
    first = group[0].system
    metrics = []
    for metric in first.metrics:
        rows = [_shifted(part.system.metric(metric.name), starts[part.number]) for part in group]
        metrics.append(replace(metric, launches=tuple(launch for row in rows for launch in row.launches)))
    scores = dict.fromkeys(score for part in group for score in part.system.scores)
    added = {name: value for name, value in varying[group[0].number].items() if name not in first.factors}
    return replace(first, factors={**first.factors, **added}, metrics=tuple(metrics), scores=tuple(scores))


def _labelled(systems: Sequence[System]) -> list[System]:
    """Return systems whose labels differ: by what differs, where they are called the same."""
    counts = Counter(system.label for system in systems)
    labels = []
    for system in systems:
        label = system.label
        if counts[label] > 1:
            alike = [other for other in systems if other.label == label]
            label += _told_apart(system, alike)
        labels.append(label)
    taken = Counter(labels)
    numbered = [label if taken[label] == 1 else f"{label} #{number}" for number, label in enumerate(labels, 1)]
    return [replace(system, label=label) for system, label in zip(systems, numbered)]


def _told_apart(system: System, alike: Sequence[System]) -> str:
    names = [
        name
        for name in dict.fromkeys(name for other in alike for name in other.factors)
        if _varies([other.factors.get(name) for other in alike])
    ]
    told = [f"{name}={system.factors.get(name)}" for name in names[:_MOST_FACTORS]]
    return f" [{', '.join(told)}]" if told else ""


def _design(measurements: Sequence[Measurement], groups: Sequence[Sequence[_Part]], is_whole: bool) -> Design:
    """Return the design of all: what was planned for the system of which least was planned."""
    designs = [measurement.design for measurement in measurements]
    first = designs[0]
    pairings = {design.pairing for design in designs}
    margins = {design.margin for design in designs}
    reasons = list(dict.fromkeys(design.justification for design in designs if design.justification))
    return replace(
        first,
        workloads=tuple(dict.fromkeys(text for design in designs for text in design.workloads)),
        launches=min(sum(part.measurement.design.launches for part in group) for group in groups),
        pairing=first.pairing if is_whole and len(pairings) == 1 else "none",
        margin=first.margin if len(margins) == 1 else None,
        justification="; ".join(reasons) or None,
    )


def _combined(measurements: Sequence[Measurement], systems: Iterable[System], design: Design) -> Measurement:
    failures = [measurement.failure or "no reason given" for measurement in measurements if not measurement.complete]
    return replace(
        measurements[0],
        started=min(measurement.started for measurement in measurements),
        ended=max(measurement.ended for measurement in measurements),
        design=design,
        systems=tuple(systems),
        processes=tuple(process for measurement in measurements for process in measurement.processes),
        complete=not failures,
        failure="; ".join(failures) or None,
    )
