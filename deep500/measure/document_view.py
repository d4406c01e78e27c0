"""What a document offers as evidence: a tolerant reading, for documents that come from elsewhere or were edited.

Where a part is missing or has another type than it should, it is left out and named in ``problems``; nothing here
raises for the content of a document whose kind is known.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deep500.core.texts import escaped
from deep500.measure.metric import Direction, MetricKind

__all__ = [
    "AbsoluteView",
    "ComparedView",
    "DocumentKind",
    "DocumentView",
    "LaunchView",
    "MetricView",
    "ScoreView",
    "SystemView",
    "flag_of",
    "items_of",
    "mapping_of",
    "number_of",
    "short",
    "text_of",
]

#: Longest name from a document that a reason shows, in characters.
_LONGEST_NAME = 60


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return the value when it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items_of(value: Any) -> list[Any]:
    """Return the value when it is a list, else an empty one."""
    return list(value) if isinstance(value, (list, tuple)) else []


def text_of(value: Any) -> str | None:
    """Return the value when it is a text with anything but spaces in it."""
    return value if isinstance(value, str) and value.strip() else None


def number_of(value: Any) -> float | None:
    """Return the value as a float when it is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def flag_of(value: Any) -> bool | None:
    """Return the value when it is true or false."""
    return value if isinstance(value, bool) else None


def short(text: str) -> str:
    """Return a name from a document as one short line without control characters."""
    line = escaped(text)
    return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 1]}…"


class DocumentKind(str, enum.Enum):
    """The documents that rules know."""

    MEASUREMENT = "measurement"
    COMPARISON = "comparison"
    RECIPE = "recipe"


@dataclass(frozen=True)
class LaunchView:
    """The samples of one launch.

    Attributes:
        process: Index of its process; ``None`` when the document does not tell.
        fresh: Whether a process was started for it; ``None`` when the document does not tell.
        samples: Its samples; none at all when one of them is no finite number.
        calls_per_sample: Number of runs whose mean one sample is; ``None`` when the document does not tell.
    """

    process: int | None
    fresh: bool | None
    samples: tuple[float, ...]
    calls_per_sample: float | None


@dataclass(frozen=True)
class MetricView:
    """The samples of one metric.

    Attributes:
        name: Metric and system, for people: ``"WallclockTime of model:lenet"``.
        metric: Name of the metric alone.
        unit: Its unit; ``None`` when the document does not tell.
        kind: What its values are.
        direction: Which are better.
        launches: The samples, launch by launch.
        content: The whole entry, with whatever else stands in it.
    """

    name: str
    metric: str
    unit: str | None
    kind: MetricKind | None
    direction: Direction | None
    launches: tuple[LaunchView, ...]
    content: Mapping[str, Any]

    @property
    def rows(self) -> list[tuple[float, ...]]:
        """The samples of each launch that has any."""
        return [launch.samples for launch in self.launches if launch.samples]

    @property
    def count(self) -> int:
        """Number of samples."""
        return sum(map(len, self.rows))

    @property
    def separate_launches(self) -> int:
        """Number of processes that gave samples; launches that name one process, or none of their own, count once."""
        own = {launch.process for launch in self.launches if launch.samples and launch.fresh is not False}
        shared = any(launch.samples and launch.fresh is False for launch in self.launches)
        return len(own) + shared

    @property
    def is_constant(self) -> bool:
        """Whether there are two samples or more, and all are equal."""
        return self.count > 1 and len({sample for row in self.rows for sample in row}) == 1


@dataclass(frozen=True)
class ScoreView:
    """How good results are: one number beside the times.

    Attributes:
        name: Name of the metric.
        value: Its value; ``None`` when there is none.
        unit: Its unit.
        kind: What the value is.
        acceptable: The value that was declared to be just good enough; ``None`` for none.
        held_out: Whether it was taken on data that the training did not see; ``None`` when the document does not tell.
    """

    name: str
    value: float | None
    unit: str
    kind: MetricKind
    acceptable: float | None
    held_out: bool | None


@dataclass(frozen=True)
class SystemView:
    """One system.

    Attributes:
        label: Its name.
        spec: The workload's text.
        identity: What is computed.
        factors: Who computes it and how.
        work: What one run does.
        hashes: The hashes that the document states.
        metrics: The samples.
        scores: How good the results are.
        content: The whole entry.
    """

    label: str
    spec: str
    identity: Mapping[str, Any]
    factors: Mapping[str, Any]
    work: Mapping[str, Any]
    hashes: Mapping[str, Any]
    metrics: tuple[MetricView, ...]
    scores: tuple[ScoreView, ...]
    content: Mapping[str, Any]

    @property
    def workload_kind(self) -> str:
        """What stands before the colon of the workload's text: ``"model"``, ``"recipe"``."""
        return self.spec.partition(":")[0]

    def setting(self, *names: str) -> Any:
        """Return the first of these that factors or identity name; ``None`` when they name none."""
        for name in names:
            for source in (self.factors, self.identity, mapping_of(self.identity.get("options"))):
                if source.get(name) is not None:
                    return source[name]
        return None


@dataclass(frozen=True)
class AbsoluteView:
    """The absolute value of a system in a comparison.

    Attributes:
        system: The system's name, for people.
        estimate: The value; ``None`` when there is none.
        ends: The ends of its interval; ``None`` when there is none.
        basis: What the interval is about: ``"launches"``, ``"in process"``, ``"none"``.
        launch_values: The value of each launch.
        samples: Number of samples.
        source: The file that it came from.
        configuration_hash: SHA-256 of all that was measured together.
    """

    system: str
    estimate: float | None
    ends: tuple[float, float] | None
    basis: str
    launch_values: tuple[float, ...]
    samples: float | None
    source: Mapping[str, Any]
    configuration_hash: str | None


@dataclass(frozen=True)
class ComparedView:
    """One system of a comparison against the base.

    Attributes:
        absolute: Its absolute value.
        ratio: Its value over that of the base; ``None`` when there is none.
        ends: The ends of the ratio's interval; ``None`` when there is none.
        p_value: p-value of no difference.
        p_holm: The same, corrected for the number of comparisons.
        verdict: What is said of it.
        pairing: How it was compared.
        content: The whole entry.
    """

    absolute: AbsoluteView
    ratio: float | None
    ends: tuple[float, float] | None
    p_value: float | None
    p_holm: float | None
    verdict: str | None
    pairing: str | None
    content: Mapping[str, Any]


@dataclass(frozen=True)
class DocumentView:
    """One document.

    Attributes:
        kind: What it is.
        content: The whole document.
        systems: What was measured; those of a comparison have no samples, and a recipe's result has no systems.
        base: The base of a comparison; ``None`` when it has none, and in other documents.
        compared: The systems that are compared with it.
        scores: How good the results are, in a recipe's result; those of a measurement stand in its systems.
        problems: What is missing or of a wrong type, apart from samples.
        sample_problems: What is missing or wrong among samples.
    """

    kind: DocumentKind
    content: Mapping[str, Any]
    systems: tuple[SystemView, ...] = ()
    base: AbsoluteView | None = None
    compared: tuple[ComparedView, ...] = ()
    scores: tuple[ScoreView, ...] = ()
    problems: tuple[str, ...] = ()
    sample_problems: tuple[str, ...] = ()

    def part(self, path: str) -> Any:
        """Return what stands at a path of keys such as ``"design.statistic"``; ``None`` for nothing."""
        found: Any = self.content
        for key in path.split("."):
            found = mapping_of(found).get(key)
        return found

    def environment(self, name: str) -> Any:
        """Return a field of the environment record, such as ``"cpu.model"``; ``None`` when it is not there."""
        value = self.part(f"environment.sections.{name}")
        return None if value == "unavailable" else value

    @property
    def statistic(self) -> Mapping[str, Any]:
        """The statistic that was asked for: its ``name``, ``quantile`` and ``confidence``."""
        return mapping_of(self.part("design.statistic") or self.part("statistic"))

    @property
    def confidence(self) -> float | None:
        """Confidence of the intervals; ``None`` when the document states none between 0 and 1."""
        confidence = number_of(self.statistic.get("confidence"))
        return confidence if confidence is not None and 0 < confidence < 1 else None

    @property
    def sides(self) -> list[AbsoluteView]:
        """The absolute values of a comparison, that of the base first."""
        return ([] if self.base is None else [self.base]) + [row.absolute for row in self.compared]

    @property
    def metrics(self) -> Iterator[MetricView]:
        """All metrics of all systems."""
        return (metric for system in self.systems for metric in system.metrics)
