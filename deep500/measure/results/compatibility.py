"""Whether two systems may be compared, and in what they differ besides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.texts import escaped
from deep500.measure.results.document import Measurement, MetricSamples, System, content_hash
from deep500.measure.workload import Scalar

__all__ = [
    "ALTERNATIVES",
    "FactorDifference",
    "aligned",
    "check_comparable",
    "conditions",
    "is_one_measurement",
    "metric_of",
    "same",
    "scalar",
]

#: Key of an identity that says: nobody but the user knows whether another problem is the same work.
ALTERNATIVES = "alternatives_allowed"

#: What the environment record says of a field that could not be read.
_UNAVAILABLE = "unavailable"

#: Name of the condition that there is no environment record.
_ENVIRONMENT = "environment"

#: Sections and fields of the environment record that tell the state of a moment. All others are conditions.
_MOMENTARY = {
    "clock.call_cost_ns",
    "clock.least_step_ns",
    "cpu.frequency_current_mhz",
    "load",
    "memory.available_bytes",
    "memory.process_swapped_bytes",
    "memory.swap_used_bytes",
    "process.cpu_throttled_s",
    "process.involuntary_context_switches",
    "process.threads",
}

#: The same for entries of each GPU.
_MOMENTARY_OF_GPU = {
    "clock_memory_mhz",
    "clock_sm_mhz",
    "memory_used_bytes",
    "performance_state",
    "temperature_c",
    "utilization_percent",
}

#: Longest value that a message or a factor shows, in characters.
_LONGEST = 60


@dataclass(frozen=True)
class FactorDifference:
    """One thing in which two systems differ, other than what forbids to compare them.

    Attributes:
        name: What it is, such as ``"framework"`` or ``"cpu.model"``.
        first: Its value for the first system, the base; ``None`` when it has none. Of lists, what the other lacks.
        second: Its value for the second system.
    """

    name: str
    first: Scalar
    second: Scalar


def check_comparable(
    first: tuple[Measurement, System],
    second: tuple[Measurement, System],
    metric: str | None = None,
    *,
    allow_unknown: bool = False,
) -> tuple[FactorDifference, ...]:
    """Check that two systems may be compared, and return all in which they differ.

    Workload, data, initialisation, metric and statistic have to be the same. Two workloads whose identities say
    ``"alternatives_allowed"`` may be different problems, which is then listed, if one measurement set them side by
    side: whoever asked for that says that they do the same work. Of files that were measured apart nobody has said so.

    Args:
        first: A measurement and one of its systems.
        second: Another.
        metric: Which metric is compared; by default the first of each.
        allow_unknown: Whether data, or an initialisation, that is known of one system only is listed as a difference
            instead of refused.

    Returns:
        The differing factors, then the differing conditions (environment, sampling plan), sorted by name within each.

    Raises:
        MeasurementError: They may not be compared; the message says why, with both values.
    """
    systems = (first[1], second[1])
    names = tuple(escaped(system.label) for system in systems)
    _check_metrics(first, second, metric, names)
    found = list(_identity_differences(systems, names, side_by_side=is_one_measurement(first[0], second[0])))
    for what, hashes in (
        ("data", (systems[0].data_hash, systems[1].data_hash)),
        ("initialisation", (systems[0].initialisation_hash, systems[1].initialisation_hash)),
    ):
        if hashes[0] == hashes[1]:
            continue
        if None in hashes and allow_unknown:
            found.append(FactorDifference(what, _hash_text(hashes[0]), _hash_text(hashes[1])))
            continue
        remedy = (
            "Where you know that they are the same, allow what is unknown (--allow-unknown)."
            if None in hashes
            else "Measure both on it."
        )
        raise MeasurementError(
            f"{names[0]} and {names[1]} cannot be compared: the {what} differs, its SHA-256 is "
            f"{_hash_text(hashes[0])} and {_hash_text(hashes[1])}. {remedy}"
        )
    found += _differences(_factors(systems[0]), _factors(systems[1]))
    found += _condition_differences(first, second)
    return tuple(found)


def metric_of(system: System, name: str | None = None) -> MetricSamples:
    """Return a system's metric by its name, the first without one.

    Raises:
        MeasurementError: It has none of this name; the message lists those that it has.
    """
    try:
        return system.metric(name)
    except KeyError:
        known = ", ".join(escaped(metric.name) for metric in system.metrics) or "none"
        asked = "metric" if name is None else _text(name)
        raise MeasurementError(f"{escaped(system.label)} has no {asked}; its metrics: {known}.") from None


def conditions(measurement: Measurement, system: System) -> dict[str, Any]:
    """Return under what conditions a system was measured, as flat names and JSON values.

    These are the fields of the environment record that stay as they are while something is measured, the settings of
    the sampler, how systems were interleaved, and the version of Deep500. What could not be read is ``"unavailable"``.
    """
    processes = [measurement.processes[launch.process] for metric in system.metrics for launch in metric.launches]
    found: dict[str, Any] = {
        "deep500": measurement.deep500,
        "fresh process": all(process.fresh for process in processes),
        "pairing": measurement.design.pairing,
    }
    found.update(_flat("plan", measurement.design.plan))
    sections = measurement.environment.get("sections")
    if not isinstance(sections, Mapping) or not sections:
        return {**found, _ENVIRONMENT: "not recorded"}
    for name, section in sections.items():
        if name in _MOMENTARY or not isinstance(section, Mapping) or set(section) == {_UNAVAILABLE}:
            continue
        for key, value in section.items():
            if key != "reasons" and f"{name}.{key}" not in _MOMENTARY:
                found.update(_flat(f"{name}.{key}", _lasting(value)))
    found.pop("libraries.versions.deep500", None)  # said already
    return found


def aligned(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the conditions of several systems under the same names, so that they can be held against each other.

    A field that one record lacks was not available there. Where one has no record of the environment, its fields are
    left out of all: a hundred of them would say no more than that.
    """
    names = dict.fromkeys(name for each in found for name in each)
    unrecorded = [_ENVIRONMENT in each for each in found]
    if any(unrecorded) and not all(unrecorded):
        names = {name: None for name in names if all(name in each for each in found)}
        names[_ENVIRONMENT] = None
    missing = {_ENVIRONMENT: "recorded"}
    return [{name: each.get(name, missing.get(name, _UNAVAILABLE)) for name in names} for each in found]


def _check_metrics(
    first: tuple[Measurement, System], second: tuple[Measurement, System], name: str | None, names: tuple[str, ...]
) -> None:
    metrics = (metric_of(first[1], name), metric_of(second[1], name))
    if metrics[0].hash != metrics[1].hash:
        raise MeasurementError(
            f"{names[0]} and {names[1]} cannot be compared: the metric differs, it is {_definition(metrics[0])} and "
            f"{_definition(metrics[1])}. Name a metric that both have."
        )
    statistics = (first[0].design.statistic, second[0].design.statistic)
    if statistics[0].hash != statistics[1].hash:
        texts = [f"{s.name} {s.quantile:.6g} at confidence {s.confidence:.6g}" for s in statistics]
        raise MeasurementError(
            f"{names[0]} and {names[1]} cannot be compared: the statistic differs, it is {escaped(texts[0])} and "
            f"{escaped(texts[1])}. Measure both with one statistic."
        )


def is_one_measurement(first: Measurement, second: Measurement) -> bool:
    """Whether two measurements are one, or one file that was read twice."""
    return first is second or (first.design == second.design and first.processes == second.processes)


def _identity_differences(
    systems: tuple[System, System], names: tuple[str, ...], *, side_by_side: bool
) -> Iterator[FactorDifference]:
    if systems[0].workload_hash == systems[1].workload_hash:
        return
    identities = [{str(key): value for key, value in system.identity.items()} for system in systems]
    differing = [
        key for key in {**identities[0], **identities[1]} if _value(identities, key, 0) != _value(identities, key, 1)
    ]
    may_differ = all(identity.get(ALTERNATIVES) is True for identity in identities)
    if may_differ and side_by_side:
        for key in differing:
            yield FactorDifference(key, *(scalar(identity.get(key)) for identity in identities))
        return
    told = "; ".join(
        f"{escaped(key)} is {_shown(identities[0].get(key))} and {_shown(identities[1].get(key))}"
        for key in differing[:3]
    )
    more = f"; and {len(differing) - 3} more" if len(differing) > 3 else ""
    remedy = (
        "Give both functions one name for what they do (as=NAME), or measure them side by side (--against)."
        if may_differ
        else "Measure the same workload with both."
    )
    raise MeasurementError(
        f"{names[0]} and {names[1]} cannot be compared: the workload differs, {told}{more}. {remedy}"
    )


def _value(identities: list[dict[str, Any]], key: str, index: int) -> Any:
    """Return what makes the hash of an entry: 1 and true differ, as they do in JSON."""
    return content_hash(identities[index][key]) if key in identities[index] else None


def _factors(system: System) -> dict[str, Any]:
    """Return a system's factors, and what its runs do where that is known."""
    work = {
        f"work.{name}": value
        for name, value in vars(system.work).items()
        if value is not None and (name != "item" or system.work.items is not None)
    }
    return {**system.factors, **work}


def _condition_differences(
    first: tuple[Measurement, System], second: tuple[Measurement, System]
) -> Iterator[FactorDifference]:
    one, other = aligned([conditions(*first), conditions(*second)])
    yield from _differences(one, other)


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[FactorDifference]:
    found = []
    for name in sorted({**first, **second}):
        one, other = first.get(name), second.get(name)
        if same(one, other):
            continue
        if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
            one, other = _only_in_each(one, other)
        found.append(FactorDifference(name, scalar(one), scalar(other)))
    return found


def same(first: Any, second: Any) -> bool:
    """Whether two JSON values are equal; 2 and 2.0 are, 1 and true are not."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (first, second)):
        return bool(first == second)
    return content_hash(first) == content_hash(second)


def _only_in_each(first: Sequence[Any], second: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the elements that only one of two lists has; both lists whole where they differ in order or number."""
    only = ([each for each in first if each not in second], [each for each in second if each not in first])
    return only if any(only) else (first, second)


def _flat(name: str, value: Any) -> dict[str, Any]:
    """Return the leaves of nested objects, named by their path; lists are leaves."""
    if not isinstance(value, Mapping) or not value:
        return {name: value}
    found: dict[str, Any] = {}
    for key, item in value.items():
        found.update(_flat(f"{name}.{key}", item))
    return found


def _lasting(value: Any) -> Any:
    """Return a list of GPUs without what changes from moment to moment; anything else as it is."""
    if not isinstance(value, (list, tuple)):
        return value
    return [
        {key: item for key, item in entry.items() if key not in _MOMENTARY_OF_GPU}
        if isinstance(entry, Mapping)
        else entry
        for entry in value
    ]


def _definition(metric: MetricSamples) -> str:
    unit = f" in {metric.unit}" if metric.unit else ""
    return escaped(f"{metric.name}{unit} ({metric.kind.value}, {metric.direction.value} is better)")


def _hash_text(value: str | None) -> str:
    return "unknown" if value is None else f"{value[:12]}…"


def scalar(value: Any) -> Scalar:
    """Return a number, a yes or no, nothing, or a short text."""
    return value if value is None or isinstance(value, (bool, int, float)) else _text(value)


def _shown(value: Any) -> str:
    return "missing" if value is None else _text(value)


def _text(value: Any) -> str:
    """Return a value in one short line; what is cut keeps apart what differs in the part that is not shown."""
    text = escaped(value) if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 16]}… ({content_hash(text)[:12]})"
