"""What a measurement found: systems, the samples of each process launch, and the conditions they were taken under.

The classes are the content of a result file (``measurement.schema.json``) one to one: ``to_dict`` and ``from_dict`` go
back and forth. Nothing here computes a statistic; :mod:`deep500.measure.results.summary` does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deep500.measure.metric import Direction, MetricKind
from deep500.measure.workload import Scalar, Score, Work

__all__ = [
    "SCHEMA_VERSION",
    "Design",
    "LaunchSamples",
    "Measurement",
    "MetricSamples",
    "Pairing",
    "ProcessRecord",
    "Statistic",
    "System",
    "content_hash",
    "metric_from_dict",
    "plain",
    "system_from_dict",
]

#: Version of the result file's form; it grows with every change that a reader could notice.
SCHEMA_VERSION = 1

#: How samples of several systems belong together: not at all; round by round within each process; launch by launch.
Pairing = str
PAIRINGS: tuple[Pairing, ...] = ("none", "samples", "launches")


def content_hash(content: Any) -> str:
    """Return the SHA-256 of a value as JSON with sorted keys, no spaces and ASCII only."""
    # Keys become texts before they are sorted: a file must have the hashes of what it was written from.
    text = json.dumps(plain(content), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True)
class Statistic:
    """Which number stands for the samples, and with what interval.

    Attributes:
        name: ``"median"`` or ``"quantile"``.
        quantile: The quantile within each launch, 0.5 for the median.
        confidence: Confidence of its interval.
    """

    name: str = "median"
    quantile: float = 0.5
    confidence: float = 0.95

    @property
    def hash(self) -> str:
        """SHA-256 of the definition."""
        return content_hash(dataclasses.asdict(self))


@dataclass(frozen=True)
class LaunchSamples:
    """The samples of one metric of one system in one process.

    Attributes:
        process: Index of the process in :attr:`Measurement.processes`.
        samples: What counts, in order, in the metric's unit, each for one run.
        warm_up: Samples before them that do not count, in order.
        calls_per_sample: Number of runs whose mean one sample is.
        converged: Whether the stopping rule was satisfied; ``None`` when there was none (a fixed number of samples).
        stop_reason: Why sampling stopped, for people.
        steady: Whether the counted samples keep one level; ``None`` when there are too few to tell.
        steady_reason: What was found, for people.
    """

    process: int
    samples: tuple[float, ...]
    warm_up: tuple[float, ...] = ()
    calls_per_sample: int = 1
    converged: bool | None = None
    stop_reason: str = ""
    steady: bool | None = None
    steady_reason: str = ""


@dataclass(frozen=True)
class MetricSamples:
    """All samples of one metric of one system.

    Attributes:
        name: The metric's name, such as ``"WallclockTime"``.
        unit: Unit of the samples.
        kind: What they are.
        direction: Which values are better.
        launches: The samples, launch by launch.
    """

    name: str
    unit: str
    kind: MetricKind
    direction: Direction
    launches: tuple[LaunchSamples, ...]

    @property
    def hash(self) -> str:
        """SHA-256 of the metric's definition."""
        return content_hash([self.name, self.unit, self.kind.value, self.direction.value])

    @property
    def rows(self) -> list[tuple[float, ...]]:
        """The counted samples of each launch."""
        return [launch.samples for launch in self.launches]


@dataclass(frozen=True)
class System:
    """One workload as it was measured: the first of several is the base of every ratio.

    Attributes:
        label: A name that is unique in the file, by default the workload's text.
        spec: The workload's text.
        identity: What was computed, whoever computed it (:attr:`Workload.identity`).
        factors: Who computed it and how, as flat names and values.
        data_hash: SHA-256 of the data; ``None`` for none or unknown.
        initialisation_hash: SHA-256 of the initial state; ``None`` for none.
        work: What one run does.
        metrics: The samples, metric by metric; the first is the one that decides.
        scores: How good the results are.
    """

    label: str
    spec: str
    identity: Mapping[str, Any]
    factors: Mapping[str, Scalar]
    data_hash: str | None
    initialisation_hash: str | None
    work: Work
    metrics: tuple[MetricSamples, ...]
    scores: tuple[Score, ...] = ()

    @property
    def workload_hash(self) -> str:
        """SHA-256 of the identity."""
        return content_hash(dict(self.identity))

    @property
    def configuration_hash(self) -> str:
        """SHA-256 of all that was measured together: identity, factors, data and initialisation.

        It binds the scores to the times: both are of the same configuration.
        """
        return content_hash(
            [
                dict(self.identity),
                dict(self.factors),
                self.data_hash,
                self.initialisation_hash,
                dataclasses.asdict(self.work),
            ]
        )

    def metric(self, name: str | None = None) -> MetricSamples:
        """Return a metric's samples by its name, the first without one.

        Raises:
            KeyError: There is none of this name.
        """
        for metric in self.metrics:
            if name is None or metric.name == name:
                return metric
        raise KeyError(name)


@dataclass(frozen=True)
class ProcessRecord:
    """One process launch.

    Attributes:
        started: When, UTC, ISO 8601.
        fresh: Whether a process was started for it; else the samples are of the caller's own process.
        setup_s: Building the workloads.
        run_s: All runs, warm-up included, as the clock saw them.
        engine_s: All else between the first run and the last: clocks, statistics, bookkeeping.
        noise: What disturbed it (:class:`deep500.measure.environment.NoiseInterval`), as JSON.
        description_s: What the workloads took, after the runs, to say what they are and how good their results: hashes,
            comparisons with a reference.
    """

    started: str
    fresh: bool
    setup_s: float
    run_s: float
    engine_s: float
    noise: Mapping[str, Any] = field(default_factory=dict)
    description_s: float = 0.0


@dataclass(frozen=True)
class Design:
    """How the measurement was planned, before anything was measured.

    Attributes:
        workloads: The texts of all workloads that were to be measured.
        launches: Number of process launches that were planned for each.
        pairing: How samples of several systems belong together.
        seed: Seed of the random order of runs and launches.
        statistic: Which number stands for the samples.
        margin: Relative difference that was declared not to matter; ``None`` for none.
        plan: The settings of the sampler, as JSON.
        justification: Why a subset of what there is was measured, where the user gave a reason.
    """

    workloads: tuple[str, ...]
    launches: int
    pairing: Pairing = "none"
    seed: int = 0
    statistic: Statistic = Statistic()
    margin: float | None = None
    plan: Mapping[str, Any] = field(default_factory=dict)
    justification: str | None = None


@dataclass(frozen=True)
class Measurement:
    """The content of a result file.

    Attributes:
        deep500: Version of Deep500.
        started: When the first launch started, UTC, ISO 8601.
        ended: When the last ended.
        design: How it was planned.
        systems: What was measured.
        processes: The process launches.
        environment: The environment record, as JSON.
        complete: Whether all that was planned was run.
        failure: Why not; ``None`` when complete.
    """

    deep500: str
    started: str
    ended: str
    design: Design
    systems: tuple[System, ...]
    processes: tuple[ProcessRecord, ...]
    environment: Mapping[str, Any] = field(default_factory=dict)
    complete: bool = True
    failure: str | None = None

    def system(self, label: str) -> System:
        """Return a system by its label.

        Raises:
            KeyError: There is none.
        """
        for system in self.systems:
            if system.label == label:
                return system
        raise KeyError(label)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the result file, hashes included."""
        content = {"schema_version": SCHEMA_VERSION, "kind": "measurement", **plain(self)}
        for system, entry in zip(self.systems, content["systems"]):
            entry["hashes"] = {
                "workload": system.workload_hash,
                "data": entry.pop("data_hash"),
                "initialisation": entry.pop("initialisation_hash"),
                "configuration": system.configuration_hash,
            }
            for metric, part in zip(system.metrics, entry["metrics"]):
                part["hashes"] = {"metric": metric.hash, "statistic": self.design.statistic.hash}
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Measurement:
        """Return the measurement of a result file's content, which has to be valid (see ``results/files.py``)."""
        design = dict(content["design"])
        design["workloads"] = tuple(design["workloads"])
        design["statistic"] = Statistic(**design["statistic"])
        design["launches"], design["seed"] = int(design["launches"]), int(design["seed"])
        return cls(
            deep500=content["deep500"],
            started=content["started"],
            ended=content["ended"],
            design=Design(**design),
            systems=tuple(map(_system, content["systems"])),
            processes=tuple(ProcessRecord(**process) for process in content["processes"]),
            environment=content["environment"],
            complete=content["complete"],
            failure=content["failure"],
        )


def plain(value: Any) -> Any:
    """Return a value, and all within it, in JSON's types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.value if isinstance(value, (Direction, MetricKind)) else value


def _system(entry: Mapping[str, Any]) -> System:
    hashes = entry["hashes"]
    return system_from_dict({**entry, "data_hash": hashes["data"], "initialisation_hash": hashes["initialisation"]})


def system_from_dict(entry: Mapping[str, Any]) -> System:
    """Return the system of which :func:`plain` made this."""
    return System(
        label=entry["label"],
        spec=entry["spec"],
        identity=entry["identity"],
        factors=entry["factors"],
        data_hash=entry["data_hash"],
        initialisation_hash=entry["initialisation_hash"],
        work=Work(**entry["work"]),
        metrics=tuple(map(metric_from_dict, entry["metrics"])),
        scores=tuple(map(_score, entry["scores"])),
    )


def metric_from_dict(entry: Mapping[str, Any]) -> MetricSamples:
    """Return the samples of which :func:`plain` made this."""
    launches = tuple(
        LaunchSamples(
            **{
                **launch,
                "process": int(launch["process"]),
                "samples": tuple(map(float, launch["samples"])),
                "warm_up": tuple(map(float, launch["warm_up"])),
                "calls_per_sample": int(launch["calls_per_sample"]),
            }
        )
        for launch in entry["launches"]
    )
    return MetricSamples(
        entry["name"], entry["unit"], MetricKind(entry["kind"]), Direction(entry["direction"]), launches
    )


def _score(entry: Mapping[str, Any]) -> Score:
    return Score(**{**entry, "direction": Direction(entry["direction"]), "kind": MetricKind(entry["kind"])})
