"""Other tools read what is exported for them, and find the same numbers in it."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyperf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.measure.environment.record import record_environment
from deep500.measure.export import EXPORTS, export, exported
from deep500.measure.results.document import Measurement
from deep500.measure.results.summary import summarise
from deep500.measure.sampling.benchmark import bench
from deep500.measure.sampling.plan import SamplingPlan
from tests.unit.measure.results.support import measurement, pair, rows, score, system

MLLOG_KEYS = {"namespace", "time_ms", "event_type", "key", "value", "metadata"}


def real() -> Measurement:
    """Measure something, with an environment record."""
    return bench(lambda: sum(range(100)), plan=SamplingPlan(minimum_time_s=0, warm_up=2, maximum_samples=50))


def run_pyperf(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "pyperf", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


ROWS = st.lists(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=8).map(tuple), min_size=1, max_size=12)


@given(ROWS)
def test_pyperf_finds_the_same_median_to_the_last_digit(samples: list[tuple[float, ...]]) -> None:
    found = measurement(system(samples))

    suite = pyperf.BenchmarkSuite.loads(exported(found, "pyperf"))

    (benchmark,) = suite.get_benchmarks()
    assert benchmark.median() == summarise(found.systems[0].metric()).estimate
    assert benchmark.get_unit() == "second"
    assert benchmark.get_nrun() == len(samples)


@pytest.mark.parametrize(
    "make", [pair, lambda: measurement(system(rows(launches=1))), real], ids=["pair", "one launch", "real"]
)
def test_pyperf_loads_the_file_and_prints_the_same_median(tmp_path: Path, make: Callable[[], Measurement]) -> None:
    found, path = make(), tmp_path / "export.json"
    export(found, "pyperf", path)

    suite = pyperf.BenchmarkSuite.load(str(path))

    assert suite.get_benchmark_names() == [each.label for each in found.systems]
    shown = run_pyperf("stats", path)
    for benchmark, each in zip(suite, found.systems, strict=True):
        estimate = summarise(each.metric()).estimate
        assert benchmark.median() == estimate
        assert f"Median +- MAD:   {benchmark.format_value(estimate)} +-" in shown
    assert suite.get_benchmarks()[0].get_dates() is not None
    for command in ("show", "dump", "metadata", "check", "hist"):
        assert run_pyperf(command, path)


def test_pyperf_knows_the_machine_and_the_warm_up(tmp_path: Path) -> None:
    record = record_environment().to_dict()
    export(replace(pair(), environment=record), "pyperf", tmp_path / "export.json")

    benchmark = pyperf.BenchmarkSuite.load(str(tmp_path / "export.json")).get_benchmark("base")

    metadata = benchmark.get_metadata()
    assert metadata["python_version"] == record["sections"]["interpreter"]["version"]
    assert metadata["cpu_model_name"] == record["sections"]["cpu"]["model"]
    assert metadata["hostname"] == record["sections"]["host"]["hostname_hash"]
    assert all(len(run.warmups) == 1 for run in benchmark.get_runs())


def test_pyperf_compares_two_files(tmp_path: Path) -> None:
    for name, median in (("old", 1e-3), ("new", 3e-3)):
        export(measurement(system(rows(median))), "pyperf", tmp_path / f"{name}.json")

    told = run_pyperf("compare_to", tmp_path / "old.json", tmp_path / "new.json")

    assert "slower" in told
    assert "3.00x" in told


def test_pyperf_accepts_what_it_writes_of_the_file(tmp_path: Path) -> None:
    export(pair(), "pyperf", tmp_path / "export.json")
    suite = pyperf.BenchmarkSuite.load(str(tmp_path / "export.json"))

    suite.dump(str(tmp_path / "again.json"))  # checks that the runs of a benchmark belong together

    again = pyperf.BenchmarkSuite.load(str(tmp_path / "again.json"))
    assert [each.median() for each in again] == [each.median() for each in suite]
    for benchmark in suite.get_benchmarks():
        assert pyperf.Benchmark(benchmark.get_runs()).median() == benchmark.median()


@pytest.mark.parametrize("form", EXPORTS.names())
def test_every_format_takes_a_real_measurement(form: str) -> None:
    found = real()

    assert exported(found, form) == exported(found, form)
    assert len(exported(found, form)) > 500


def test_google_benchmark_has_the_same_median() -> None:
    # The wheel of Google Benchmark brings no tools/compare.py; the keys are held against what its library writes.
    found = pair()

    entries = json.loads(exported(found, "google_benchmark"))["benchmarks"]

    for each in found.systems:
        times = [e["real_time"] for e in entries if e["run_name"] == each.label and e["run_type"] == "iteration"]
        (median,) = (e["real_time"] for e in entries if e["name"] == f"{each.label}_median")
        assert median == summarise(each.metric()).estimate * 1e9
        assert median == pytest.approx(statistics.median(times))


def test_mllog_lines_parse_as_json_with_the_required_keys() -> None:
    found = replace(real(), systems=tuple(replace(each, scores=(score(),)) for each in real().systems))

    lines = exported(found, "mllog").splitlines()

    assert lines
    for line in lines:
        head, _, text = line.partition(" ")
        assert head == ":::MLLOG"
        content = json.loads(text)
        assert set(content) == MLLOG_KEYS
        assert {"file", "lineno"} <= set(content["metadata"])
    keys = [json.loads(line.partition(" ")[2])["key"] for line in lines]
    assert {"submission_benchmark", "seed", "run_start", "run_stop", "tracked_stats", "eval_accuracy"} <= set(keys)


def test_mlperf_parses_the_lines(tmp_path: Path) -> None:
    parser = pytest.importorskip("mlperf_logging.compliance_checker.mlp_parser", exc_type=ImportError)
    export(pair(), "mllog", tmp_path / "log")

    lines, errors = parser.parse_file_600(str(tmp_path / "log"))

    assert errors == []
    assert len(lines) == len((tmp_path / "log").read_text().splitlines())
