from __future__ import annotations

import json
import statistics
from typing import Any

import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.exports.google_benchmark import google_benchmark
from deep500.measure.results.document import Measurement
from deep500.measure.results.summary import summarise
from deep500.measure.workload import Work
from tests.unit.measure.results.support import ENVIRONMENT, measurement, metric, pair, rows, system

#: What Google Benchmark 1.9.5 itself writes with ``--benchmark_format=json --benchmark_repetitions=3``.
CONTEXT = {
    "date",
    "host_name",
    "executable",
    "num_cpus",
    "mhz_per_cpu",
    "cpu_scaling_enabled",
    "aslr_enabled",
    "caches",
    "load_avg",
    "library_version",
    "library_build_type",
    "json_schema_version",
}
CACHE = {"type", "level", "size", "num_sharing"}
COMMON = {
    "name",
    "family_index",
    "per_family_instance_index",
    "run_name",
    "run_type",
    "repetitions",
    "threads",
    "iterations",
    "real_time",
    "cpu_time",
    "time_unit",
}
ITERATION = COMMON | {"repetition_index"}
AGGREGATE = COMMON | {"aggregate_name", "aggregate_unit"}


def content(found: Measurement) -> dict[str, Any]:
    return json.loads(google_benchmark(found))


def test_keys_are_those_of_google_benchmark() -> None:
    found = content(measurement(system(work=Work())))

    ours = set(found["context"]) - {"deep500_cpu_time"}
    assert ours == CONTEXT - {"aslr_enabled", "cpu_scaling_enabled"}  # which are not known
    assert all(set(cache) == CACHE for cache in found["context"]["caches"])
    assert len(found["context"]["caches"]) == 2
    for entry in found["benchmarks"]:
        assert set(entry) == (ITERATION if entry["run_type"] == "iteration" else AGGREGATE)


def test_launches_are_repetitions_and_their_statistics_are_aggregates() -> None:
    found = pair()

    entries = content(found)["benchmarks"]

    for number, each in enumerate(found.systems):
        own = [entry for entry in entries if entry["run_name"] == each.label]
        summary = summarise(each.metric())
        launches = [entry for entry in own if entry["run_type"] == "iteration"]
        assert [entry["real_time"] for entry in launches] == [value * 1e9 for value in summary.launch_values]
        assert [entry["repetition_index"] for entry in launches] == list(range(10))
        assert {entry["iterations"] for entry in launches} == {20}
        assert {entry["family_index"] for entry in own} == {number}
        times = {entry["aggregate_name"]: entry["real_time"] for entry in own if entry["run_type"] == "aggregate"}
        assert times["median"] == summary.estimate * 1e9
        assert times["mean"] == pytest.approx(statistics.fmean(summary.launch_values) * 1e9)
        assert times["stddev"] == pytest.approx(statistics.stdev(summary.launch_values) * 1e9)
        assert times["cv"] == pytest.approx(times["stddev"] / times["mean"])
        names = [entry["name"] for entry in own if entry["run_type"] == "aggregate"]
        assert names == [f"{each.label}_{name}" for name in ("mean", "median", "stddev", "cv")]
    assert {entry["time_unit"] for entry in entries} == {"ns"}


def test_cpu_time_is_said_not_to_be_measured() -> None:
    found = content(measurement())

    assert found["context"]["deep500_cpu_time"] == "not measured, real_time repeated"
    assert all(entry["cpu_time"] == entry["real_time"] for entry in found["benchmarks"])


def test_the_only_launch_has_no_aggregates() -> None:
    entries = content(measurement(system(rows(launches=1))))["benchmarks"]

    assert [entry["run_type"] for entry in entries] == ["iteration"]


def test_items_per_second_follow_where_they_are_known() -> None:
    entries = content(measurement(system([(0.5,), (0.5,)], work=Work(items=8))))["benchmarks"]

    assert [entry.get("items_per_second") for entry in entries] == [16.0, 16.0, 16.0, 16.0, None, None]


def test_governor_tells_whether_the_clock_changes() -> None:
    environment = json.loads(json.dumps(ENVIRONMENT))
    environment["sections"]["cpu"]["governor"] = "powersave"

    assert content(measurement(environment=environment))["context"]["cpu_scaling_enabled"] is True


def test_little_is_known_without_a_record() -> None:
    context = content(measurement(environment={}))["context"]

    assert "host_name" not in context
    assert (context["caches"], context["load_avg"]) == ([], [])


def test_what_was_not_timed_is_refused() -> None:
    found = measurement(system(metrics=(metric(rows(), name="PeakMemory", unit="B"),)))

    with pytest.raises(MeasurementError, match="lenet has none, only PeakMemory"):
        google_benchmark(found)
