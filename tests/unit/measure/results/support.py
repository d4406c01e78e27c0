"""Measurements that nobody measured: samples from a random stream, or as they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import (
    Design,
    LaunchSamples,
    Measurement,
    MetricSamples,
    ProcessRecord,
    Statistic,
    System,
)
from deep500.measure.workload import Score, Work

#: A measurement and one of its systems.
Entry = tuple[Measurement, System | str]

#: An environment record, as far as anything here looks at it.
ENVIRONMENT: dict[str, Any] = {
    "sections": {
        "cpu": {
            "model": "Small CPU",
            "threads": 4,
            "governor": "unavailable",
            "flags": ["avx", "avx2"],
            "frequency_current_mhz": {"least": 2000.0, "median": 2300.0, "most": 2500.0},
            "caches": [
                {"level": 1, "type": "Data", "size_bytes": 32768, "count": 4},
                {"level": 3, "type": "Unified", "size_bytes": 8388608, "count": 1},
            ],
            "reasons": {"governor": "no policy"},
        },
        "gpu": {"devices": [{"name": "Small GPU", "temperature_c": 40}], "reasons": {}},
        "host": {"hostname_hash": "a1d8", "kernel": "6.1", "operating_system": "Linux", "reasons": {}},
        "interpreter": {"version": "3.11.7", "implementation": "CPython", "compiler": "GCC", "reasons": {}},
        "libraries": {"versions": {"numpy": "2.0.0", "torch": None, "deep500": "1.0"}, "reasons": {}},
        "load": {"average_1min": 0.5, "average_5min": 0.4, "average_15min": 0.3, "reasons": {}},
        "mpi": {"unavailable": "planted"},
    }
}


def rows(median: float = 1.0, launches: int = 10, samples: int = 20, seed: int = 0) -> list[tuple[float, ...]]:
    """Draw lognormal samples with 2 % between launches and 1 % within."""
    random = np.random.default_rng(seed)
    centres = median * np.exp(0.02 * random.standard_normal(launches))
    table = centres[:, None] * np.exp(0.01 * random.standard_normal((launches, samples)))
    return [tuple(map(float, row)) for row in table]


def metric(samples: Sequence[Sequence[float]], processes: Sequence[int] | None = None, **changes: Any) -> MetricSamples:
    """Return seconds, one launch for each row."""
    launches = tuple(
        LaunchSamples(process, tuple(row), (2.0 * row[0],), 1, True, "narrow enough", True, "one level")
        for process, row in zip(processes or range(len(samples)), samples)
    )
    values = {"name": "WallclockTime", "unit": "s", "kind": MetricKind.COST, "direction": Direction.LOWER}
    return MetricSamples(**{**values, "launches": launches, **changes})


def system(
    samples: Sequence[Sequence[float]] | None = None, processes: Sequence[int] | None = None, **changes: Any
) -> System:
    """Return a system with one metric."""
    values: dict[str, Any] = {
        "label": "lenet",
        "spec": "model:lenet@pytorch",
        "identity": {"problem": "training step", "batch_size": 64},
        "factors": {"framework": "pytorch"},
        "data_hash": "d" * 64,
        "initialisation_hash": "e" * 64,
        "work": Work(items=64, item="sample", flops=1e6, dtype="float32"),
        "metrics": (metric(rows() if samples is None else samples, processes),),
        "scores": (),
    }
    return System(**{**values, **changes})


def score(**changes: Any) -> Score:
    """Return an accuracy."""
    return Score(
        **{"name": "TestAccuracy", "value": 98.5, "unit": "%", "acceptable": 97.0, "held_out": True, **changes}
    )


def measurement(*systems: System, day: int = 1, fresh: bool = True, **changes: Any) -> Measurement:
    """Return a measurement of systems, whose processes started on a day of a month."""
    systems = systems or (system(),)
    used = [launch.process for each in systems for samples in each.metrics for launch in samples.launches]
    processes = tuple(
        ProcessRecord(f"2026-01-{day:02d}T00:{index:02d}:00.250+00:00", fresh, 0.5, 1.25, 0.01, {"load_1min": 0.1})
        for index in range(max(used, default=0) + 1)
    )
    design = {"workloads": tuple(each.spec for each in systems), "launches": max(used, default=0) + 1}
    names = ("pairing", "seed", "statistic", "margin", "plan", "justification", "workloads", "launches")
    design |= {name: changes.pop(name) for name in names if name in changes}
    values: dict[str, Any] = {
        "deep500": "1.0",
        "started": processes[0].started,
        "ended": f"2026-01-{day:02d}T01:00:00.000+00:00",
        "design": Design(**design),
        "systems": systems,
        "processes": processes,
        "environment": ENVIRONMENT,
    }
    return Measurement(**{**values, **changes})


def pair(ratio: float = 0.5, launches: int = 10, **changes: Any) -> Measurement:
    """Return two systems that were interleaved; the second takes so many times as long."""
    base = rows(launches=launches)
    other = [tuple(ratio * value * (1 + 0.001 * index) for value in row) for index, row in enumerate(base)]
    systems = (
        system(base, label="base"),
        system(other, label="other", factors={"framework": "tensorflow"}, spec="model:lenet@tensorflow"),
    )
    return measurement(*systems, **{"pairing": "samples", **changes})


def all_of(found: Measurement) -> list[Entry]:
    """Return all systems of a measurement."""
    return [(found, each) for each in found.systems]


def apart(*medians: float, launches: int = 10, **changes: Any) -> list[Entry]:
    """Return a measurement of its own for each median."""
    found = [
        measurement(system(rows(median, launches=launches, seed=day), **changes), day=day)
        for day, median in enumerate(medians, 1)
    ]
    return [(each, "lenet") for each in found]


def interleaved(*ratios: float, launches: int = 10, **changes: Any) -> list[Entry]:
    """Return systems that were interleaved, each with its ratio to the first."""
    base = np.array(rows(launches=launches))
    noise = np.random.default_rng(7)
    systems = [system(base.tolist(), label="base")]
    for number, ratio in enumerate(ratios, 1):
        table = base * ratio * np.exp(0.002 * noise.standard_normal((launches, 1)))
        systems.append(system(table.tolist(), label=f"s{number}"))
    return all_of(measurement(*systems, **{"pairing": "samples", **changes}))


P99 = Statistic("quantile", 0.99)
