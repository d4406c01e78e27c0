"""Google Benchmark's JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.measure.exports._environment import environment_number, environment_text, environment_value
from deep500.measure.metric import MetricKind
from deep500.measure.results.document import Measurement, System
from deep500.measure.results.summary import TIME, Summary, summarise
from deep500.measure.statistics.means import mean_of

__all__ = ["google_benchmark"]

#: Version of the format, as Google Benchmark counts it.
_VERSION = 1

_NANOSECONDS = 1e9


def google_benchmark(measurement: Measurement) -> str:
    """Google Benchmark's JSON, for its ``tools/compare.py`` and for what else reads it.

    A system is a benchmark of its label, and a process launch is a repetition whose time is the launch's median or
    other quantile; ``iterations`` are the runs that it is taken from. With two launches or more their mean, median,
    standard deviation and coefficient of variation follow as aggregates. The median is that of Deep500. CPU time is
    not measured: ``cpu_time`` repeats ``real_time``, since the tools ask for it, and the context says so.

    Source: Google Benchmark 1.9.5, what its ``--benchmark_format=json`` writes.

    Raises:
        MeasurementError: A system was not timed, or there are too few samples for the quantile.
    """
    entries = [
        entry for number, system in enumerate(measurement.systems) for entry in _entries(measurement, system, number)
    ]
    return json.dumps({"context": _context(measurement), "benchmarks": entries}, indent=2) + "\n"


def _entries(measurement: Measurement, system: System, number: int) -> list[dict[str, Any]]:
    if all(metric.name != TIME for metric in system.metrics):
        names = ", ".join(metric.name for metric in system.metrics)
        raise MeasurementError(
            f"Google Benchmark's format is of times, and {system.label} has none, only {names}. Export it to another "
            "format."
        )
    metric = system.metric(TIME)
    summary = summarise(metric, measurement.design.statistic)
    common = {
        "name": system.label,
        "family_index": number,
        "per_family_instance_index": 0,
        "run_name": system.label,
        "repetitions": summary.launches,
        "threads": 1,
    }
    found: list[dict[str, Any]] = []
    for index, (launch, value) in enumerate(zip(metric.launches, summary.launch_values)):
        iterations = len(launch.samples) * launch.calls_per_sample
        parts = {"run_type": "iteration", "repetition_index": index, "iterations": iterations}
        found.append({**common, **parts, **_times(value), **_rate(system, value)})
    if summary.launches > 1:
        found += _aggregates(system, summary, common)
    return found


def _aggregates(system: System, summary: Summary, common: Mapping[str, Any]) -> list[dict[str, Any]]:
    values = summary.launch_values
    mean = mean_of(values, MetricKind.COST)
    deviation = statistics.stdev(values)
    found = []
    for name, value in (("mean", mean), ("median", summary.estimate), ("stddev", deviation)):
        rate = {} if name == "stddev" else _rate(system, value)
        found.append({**common, **_aggregate(system, name, "time", summary.launches), **_times(value), **rate})
    if mean > 0:
        share = {"real_time": deviation / mean, "cpu_time": deviation / mean, "time_unit": "ns"}
        found.append({**common, **_aggregate(system, "cv", "percentage", summary.launches), **share})
    return found


def _aggregate(system: System, name: str, unit: str, count: int) -> dict[str, Any]:
    return {
        "name": f"{system.label}_{name}",
        "run_type": "aggregate",
        "aggregate_name": name,
        "aggregate_unit": unit,
        "iterations": count,
    }


def _times(value_s: float) -> dict[str, Any]:
    return {"real_time": value_s * _NANOSECONDS, "cpu_time": value_s * _NANOSECONDS, "time_unit": "ns"}


def _rate(system: System, value_s: float) -> dict[str, float]:
    items = system.work.items
    return {} if items is None or value_s <= 0 else {"items_per_second": items / value_s}


def _context(measurement: Measurement) -> dict[str, Any]:
    frequency = environment_number(measurement, "cpu.frequency_current_mhz.median")
    governor = environment_text(measurement, "cpu.governor")
    load = [environment_number(measurement, f"load.average_{period}min") for period in (1, 5, 15)]
    known = {
        "date": measurement.started,
        "host_name": environment_text(measurement, "host.hostname_hash"),
        "executable": "deep500",
        "num_cpus": environment_number(measurement, "cpu.threads"),
        "mhz_per_cpu": None if frequency is None else round(frequency),
        "cpu_scaling_enabled": None if governor is None else governor != "performance",
        "caches": _caches(measurement),
        "load_avg": [value for value in load if value is not None],
        "library_version": measurement.deep500,
        "library_build_type": "release",
        "json_schema_version": _VERSION,
        "deep500_cpu_time": "not measured, real_time repeated",
    }
    return {key: value for key, value in known.items() if value is not None}


def _caches(measurement: Measurement) -> list[dict[str, Any]]:
    threads = environment_number(measurement, "cpu.threads")
    found = []
    for cache in environment_value(measurement, "cpu.caches") or ():
        count = cache.get("count") if isinstance(cache, Mapping) else None
        if threads is None or not isinstance(count, int) or count < 1:
            continue
        sharing = max(1, round(threads / count))
        found.append(
            {
                "type": cache.get("type"),
                "level": cache.get("level"),
                "size": cache.get("size_bytes"),
                "num_sharing": sharing,
            }
        )
    return found
