from __future__ import annotations

import copy
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from deep500.core.errors import FileWriteError, MeasurementError
from deep500.measure.environment.record import record_environment
from deep500.measure.results import files
from deep500.measure.results.comparing import compare
from deep500.measure.results.document import Design, Measurement, Statistic
from deep500.measure.results.files import (
    read_comparison,
    read_measurement,
    read_with_source,
    write_comparison,
    write_measurement,
)
from deep500.measure.results.report import ComparisonReport
from tests.unit.measure.results.support import measurement, metric, pair, rows, score, system
from tests.unit.measure.results.test_document import MEASUREMENTS
from tests.unit.recipe.support import result as recipe_result

PROJECT = Path(__file__).resolve().parents[4]
Change = Callable[[dict[str, Any]], Any]


def report() -> ComparisonReport:
    found = pair()
    return compare([(found, each) for each in found.systems])


def refusal(path: Path, content: Any, read: Callable[[Path], Any] = read_measurement) -> str:
    """Write a file that must be refused in one line that names it, and return the message."""
    if isinstance(content, (str, bytes)):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        path.write_text(json.dumps(content))
    with pytest.raises(MeasurementError) as caught:
        read(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 1000
    return message


def test_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    found = replace(pair(), environment=record_environment().to_dict(), complete=False, failure="interrupted")
    found = replace(found, systems=tuple(replace(each, scores=(score(),)) for each in found.systems))

    write_measurement(found, path)

    assert read_measurement(path) == found
    again, source = read_with_source(str(path))
    assert again == found
    assert source.path == str(path)
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(MEASUREMENTS)
def test_whatever_is_written_can_be_read(tmp_path: Path, found: Measurement) -> None:
    write_measurement(found, tmp_path / "result.json")

    assert read_measurement(tmp_path / "result.json") == found


def test_comparison_gives_back_what_was_written(tmp_path: Path) -> None:
    write_comparison(report_ := report(), tmp_path / "comparison.json")

    assert read_comparison(tmp_path / "comparison.json") == report_


def test_schema_is_read_by_nobody_who_reads_no_file() -> None:
    code = "import sys; from deep500.measure.results import files; assert 'jsonschema' not in sys.modules"

    assert subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("{", "is not valid JSON"),
        (":::MLLOG {}", "is not valid JSON"),
        (b"\xff\xfe{}", "no text in UTF-8"),
        ('{"kind": NaN}', "holds NaN, which JSON has no word for"),
        ('{"kind": [-Infinity]}', "holds -Infinity"),
        ('{"kind": 1e999}', "1e999, which is too large"),
        ('{"kind": 1' + "0" * 5000 + "}", "a number of 5001 digits"),
        ('{"kind": 1' + "0" * 350 + "}", "a number of 351 digits"),
        ('{"kind": "measurement", "kind": "measurement"}', "the key 'kind' twice"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 101 + "]" * 101, "nested too deeply"),
        ("[1, 2]", "holds [1, 2] instead of an object"),
        ("3", "holds 3 instead of an object"),
        ("null", "holds None instead of an object"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_object_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert message in refusal(tmp_path / "result.json", content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kind": "comparison"}, "is a comparison (deep500 compare --output). A measurement is needed"),
        ({"kind": "memo"}, "is of the kind 'memo', which Deep500 does not know"),
        ({"kind": ["measurement"]}, "is of the kind ['measurement']"),
        (recipe_result().to_dict(), "is the result of a recipe (deep500 run)"),
        (record_environment().to_dict(), "is an environment record"),
        ({"version": "1.0", "benchmarks": []}, "looks like a file of pyperf"),
        ({"context": {}, "benchmarks": []}, "looks like a file of Google Benchmark"),
        ({}, "has no kind, so it is no result of Deep500"),
    ],
    ids=range(8),
)
def test_other_documents_are_told(tmp_path: Path, content: Any, message: str) -> None:
    assert message in refusal(tmp_path / "other.json", content)


def test_measurement_is_no_comparison(tmp_path: Path) -> None:
    message = refusal(tmp_path / "a.json", pair().to_dict(), read_comparison)

    assert "is a measurement (deep500 bench --output). A comparison is needed" in message


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.json", "does not exist"), ("", "is a folder"), ("file/x.json", "cannot be read"), ("a\0b", "cannot be")],
)
def test_paths_that_lead_to_no_file(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(MeasurementError, match=message):
        read_measurement(f"{tmp_path}/{name}")


def test_newer_version_is_told(tmp_path: Path) -> None:
    content = {**pair().to_dict(), "schema_version": 2, "unheard_of": 1}

    assert "has schema version 2; this Deep500 knows versions up to 1" in refusal(tmp_path / "a.json", content)


def part(content: dict[str, Any], *path: str | int) -> Any:
    for key in path:
        content = content[key]
    return content


FIRST = ("systems", 0)
METRIC = (*FIRST, "metrics", 0)
LAUNCH = (*METRIC, "launches", 0)


@pytest.mark.parametrize(
    ("path", "key", "value", "place"),
    [
        ((), "schema_version", "1", "schema_version: "),
        ((), "schema_version", True, "schema_version: "),
        ((), "started", "yesterday", "started: "),
        ((), "processes", [], "processes: "),
        ((), "systems", [], "systems: "),
        ((), "complete", 1, "complete: "),
        ((), "failure", "it was complete", "failure: "),
        ((), "complete", False, "failure: "),
        ((), "environment", None, "environment: "),
        (("design",), "pairing", "rounds", "design.pairing: "),
        (("design",), "margin", 0, "design.margin: "),
        (("design",), "launches", 0, "design.launches: "),
        (("design",), "seed", -1, "design.seed: "),
        (("design", "statistic"), "quantile", 0.9, "design.statistic.quantile: "),
        (("design", "statistic"), "name", "mean", "design.statistic.name: "),
        (FIRST, "label", "", "systems[0].label: "),
        (FIRST, "factors", {"a": [1]}, "systems[0].factors.a: "),
        (FIRST, "metrics", [], "systems[0].metrics: "),
        ((*FIRST, "work"), "items", -1, "systems[0].work.items: "),
        ((*FIRST, "hashes"), "data", "short", "systems[0].hashes.data: "),
        (METRIC, "kind", "price", "systems[0].metrics[0].kind: "),
        (METRIC, "launches", [], "systems[0].metrics[0].launches: "),
        (LAUNCH, "samples", [], "systems[0].metrics[0].launches[0].samples: "),
        (LAUNCH, "samples", [1, "2"], "systems[0].metrics[0].launches[0].samples[1]: "),
        (LAUNCH, "samples", [1, True], "systems[0].metrics[0].launches[0].samples[1]: "),
        (LAUNCH, "samples", [[1]], "systems[0].metrics[0].launches[0].samples[0]: "),
        (LAUNCH, "warm_up", None, "systems[0].metrics[0].launches[0].warm_up: "),
        (LAUNCH, "process", -1, "systems[0].metrics[0].launches[0].process: "),
        (LAUNCH, "process", 0.5, "systems[0].metrics[0].launches[0].process: "),
        (LAUNCH, "calls_per_sample", 0, "systems[0].metrics[0].launches[0].calls_per_sample: "),
        (("processes", 0), "run_s", "long", "processes[0].run_s: "),
    ],
    ids=str,
)
def test_place_that_breaks_the_schema_is_named(
    tmp_path: Path, path: tuple[str | int, ...], key: str, value: Any, place: str
) -> None:
    content = pair().to_dict()
    part(content, *path)[key] = value

    assert f"is no valid measurement: {place}" in refusal(tmp_path / "a.json", content)


PLACES: list[tuple[str | int, ...]] = [(), ("design",), FIRST, (*FIRST, "work"), (*FIRST, "hashes"), METRIC, LAUNCH]
PLACES += [(*METRIC, "hashes"), ("design", "statistic"), ("processes", 0), (*FIRST, "scores", 0)]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_every_key_is_needed_and_no_other_is_known(tmp_path: Path, place: tuple[str | int, ...]) -> None:
    content = measurement(system(scores=(score(),))).to_dict()
    for key in part(content, *place):
        broken = copy.deepcopy(content)
        del part(broken, *place)[key]
        message = refusal(tmp_path / "a.json", broken)
        assert ("has no kind" if key == "kind" and not place else f"'{key}' is a required property") in message
    broken = copy.deepcopy(content)
    part(broken, *place)["surprise"] = 1
    assert "surprise" in refusal(tmp_path / "a.json", broken)


def test_long_values_and_control_characters_are_not_quoted(tmp_path: Path) -> None:
    content = pair().to_dict()
    content["started"] = "\x1b[31m" + "x" * 100_000

    message = refusal(tmp_path / "a.json", content)

    assert "started: a text of 100005 characters breaks the rule 'pattern'" in message
    assert "\x1b" not in message


def rename(key: str, value: Any, *path: str | int) -> Change:
    def change(content: dict[str, Any]) -> None:
        part(content, *path)[key] = value

    return change


def double_metric(content: dict[str, Any]) -> None:
    content["systems"][0]["metrics"] *= 2


def same_process(content: dict[str, Any]) -> None:
    content["systems"][0]["metrics"][0]["launches"][1]["process"] = 0


def own_process(content: dict[str, Any]) -> None:
    for process in content["processes"]:
        process["fresh"] = False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rename("label", "other", *FIRST), "two systems have the label 'other'"),
        (rename("process", 10, *LAUNCH), "a launch of WallclockTime of base is of process 10, and there are 10"),
        (same_process, "two launches of WallclockTime of base are of one process"),
        (own_process, "WallclockTime of base has 10 launches, and not all are of fresh processes"),
        (double_metric, "base has two metrics of the name WallclockTime"),
        (rename("batch_size", 32, *FIRST, "identity"), "the workload hash of base is"),
        (rename("problem", True, *FIRST, "identity"), "the workload hash of base is"),
        (rename("framework", "tensorflow", *FIRST, "factors"), "the configuration hash of base is"),
        (rename("flops", 2e6, *FIRST, "work"), "the configuration hash of base is"),
        (rename("data", "f" * 64, *FIRST, "hashes"), "the configuration hash of base is"),
        (rename("initialisation", None, "systems", 1, "hashes"), "the configuration hash of other is"),
        (rename("configuration", "f" * 64, *FIRST, "hashes"), "the configuration hash of base is ffffffffffff…"),
        (rename("workload", "f" * 64, *FIRST, "hashes"), "the workload hash of base is ffffffffffff…"),
        (rename("unit", "ms", *METRIC), "the metric hash of WallclockTime of base is"),
        (rename("direction", "higher", *METRIC), "the metric hash of WallclockTime of base is"),
        (rename("confidence", 0.5, "design", "statistic"), "the statistic hash of WallclockTime of base is"),
        (rename("statistic", "f" * 64, *METRIC, "hashes"), "the statistic hash of WallclockTime of base is"),
    ],
    ids=range(17),
)
def test_file_that_contradicts_itself_is_refused(tmp_path: Path, change: Change, message: str) -> None:
    content = pair().to_dict()
    change(content)

    assert f"is refused: {message}" in refusal(tmp_path / "a.json", content)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (measurement(system([(1.0, float("nan"))])), "1 of 2 samples of WallclockTime of lenet in launch 1 are NaN"),
        (measurement(system([(float("-inf"),)])), "1 of 1 samples"),
        (measurement(system([(1.0,)], identity={"a": float("nan")})), "Out of range float"),
        (measurement(system([(1.0,)], identity={"a": np.float32(1)})), "float32 is not JSON serializable"),
        (measurement(system([(1.0,)], identity={"a": {1, 2}})), "set is not JSON serializable"),
        (measurement(system([(1.0,)], metrics=())), r"systems\[0\].metrics: \[\] should be non-empty"),
        (measurement(system(metrics=(replace(metric([(1.0,)]), launches=()),))), "launches: .* non-empty"),
        (measurement(system(), system()), "two systems have the label 'lenet'"),
        (measurement(margin=-1.0), "design.margin: -1.0"),
        (measurement(statistic=Statistic("mean")), "design.statistic.name: 'mean'"),
        (replace(measurement(), design=Design((), 1)), "design.workloads: "),
        (measurement(fresh=False), "not all are of fresh processes"),
    ],
    ids=range(12),
)
def test_what_could_not_be_read_is_not_written(tmp_path: Path, changed: Measurement, message: str) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")

    with pytest.raises(MeasurementError, match=rf"The measurement cannot be written to .*result.json: .*{message}"):
        write_measurement(changed, path)
    assert path.read_text() == "old"


def test_deep_content_is_not_written(tmp_path: Path) -> None:
    for depth, message in ((200, "nested too deeply"), (10_000, "recursion")):
        nested: Any = []
        for _ in range(depth):
            nested = [nested]
        with pytest.raises(MeasurementError, match=message):
            write_measurement(measurement(system(identity={"a": nested})), tmp_path / "a.json")
    assert not list(tmp_path.iterdir())


def test_full_disk_is_a_mistake_of_writing(tmp_path: Path) -> None:
    with pytest.raises(FileWriteError, match="The measurement cannot be written"):
        write_measurement(pair(), tmp_path / "missing" / "a.json")


def drop(*path: str | int) -> Change:
    def change(content: dict[str, Any]) -> None:
        del part(content, *path[:-1])[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("base"), "'base' is a required property"),
        (drop("base", "absolute"), "base: 'absolute' is a required property"),
        (drop("base", "absolute", "estimate"), "base.absolute: 'estimate' is a required property"),
        (rename("estimate", None, "base", "absolute"), "base.absolute.estimate: None is not of type 'number'"),
        (rename("base", None), "base: None is not of type 'object'"),
        (drop("metric", "unit"), "metric: 'unit' is a required property"),
        (drop("rows", 0, "system", "absolute"), "rows[0].system: 'absolute' is a required property"),
        (rename("kind", "ratio", "metric"), "metric.kind: 'ratio' is not one of ['cost', 'rate']"),
        (rename("interval", None, "rows", 0, "ratio"), "rows[0]"),
        (rename("estimate", -1, "rows", 0, "ratio"), "rows[0].ratio.estimate: "),
        (rename("rows", []), "rows: "),
        (rename("verdict", "better", "rows", 0), "rows[0].verdict: "),
        (rename("p_value", 2, "rows", 0), "rows[0].p_value: "),
        (rename("schema_version", 3), "has schema version 3"),
    ],
    ids=range(14),
)
def test_comparison_that_breaks_its_schema_is_refused(tmp_path: Path, change: Change, message: str) -> None:
    content = report().to_dict()
    change(content)

    assert message in refusal(tmp_path / "comparison.json", content, read_comparison)


def test_comparison_that_breaks_its_schema_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=r"The comparison cannot be written .*rows: "):
        write_comparison(replace(report(), rows=()), tmp_path / "a.json")
    assert not list(tmp_path.iterdir())


def test_version_of_the_schema_is_that_of_the_code() -> None:
    for kind, (file, version, _) in files._KINDS.items():
        properties = json.loads(file.read_text())["properties"]
        assert properties["schema_version"] == {"const": version}
        assert properties["kind"] == {"const": kind}


def test_environment_that_is_recorded_is_kept(tmp_path: Path) -> None:
    found = measurement(system(rows()), environment=record_environment().to_dict())
    write_measurement(found, tmp_path / "a.json")

    assert read_measurement(tmp_path / "a.json").environment == found.environment
