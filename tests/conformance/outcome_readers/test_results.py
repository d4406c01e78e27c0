from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.measure.results.collection import Collection
from deep500.measure.results.files import write_measurement
from deep500.recipe.result import MetricResult, write_result
from tests.conformance.outcome_readers.samples import read, told
from tests.unit.measure.results import support as measured
from tests.unit.recipe.support import result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "campaign").mkdir()
    return tmp_path / "campaign"


def test_recipe_that_passed(folder: Path) -> None:
    write_result(result(), folder / "a.json")
    row = read(folder)[0].row(0, named=True)

    assert (row["key"], row["group"], row["status"]) == ("small@reference", "campaign", "passed")
    assert row["ended"] - row["started"] == 1.0
    assert (row["framework"], row["framework_version"], row["gpus"]) == ("reference", "2", 0.0)
    assert row["metric_Accuracy"] == 98.0


@pytest.mark.parametrize(
    ("changes", "status", "cause"),
    [
        (
            {"metrics": [MetricResult("Accuracy", 90.0, "%", "higher", 97.0, -7.0, False)]},
            "failed",
            "Accuracy is 90.0, acceptable 97.0",
        ),
        ({"failure": "The loss is not a number"}, "failed", "The loss is not a number"),
        ({"complete": False, "ended": None}, "missing", "incomplete"),
        ({"complete": False, "failure": "interrupted; it goes on with --resume x"}, "cancelled", "interrupted; it"),
        ({"complete": False, "failure": "ValueError: no"}, "failed", "ValueError: no"),
        (
            {"runs": {"seeds": [0, 1], "passed": [True, False], "values": {}, "statistics": {}}},
            "failed",
            "not all of its runs passed",
        ),
    ],
)
def test_recipe_that_did_not_pass(folder: Path, changes: dict[str, object], status: str, cause: str) -> None:
    write_result(result(**changes), folder / "a.json")
    row = read(folder)[0].row(0, named=True)

    assert row["status"] == status
    assert row["cause"].startswith(cause)


def test_recipe_on_several_gpus(folder: Path) -> None:
    ranks = {"count": 4, "communicator": "mpi", "scheme": "allreduce", "sent_bytes": [1] * 4}
    ranks |= {"received_bytes": [1] * 4, "payload_bytes": [1] * 4}
    write_result(result(device="gpu:0", ranks=ranks), folder / "a.json")
    row = read(folder)[0].row(0, named=True)

    assert (row["gpus"], row["ranks"], row["scheme"]) == (4.0, 4.0, "allreduce")
    assert row["cost"] == pytest.approx(4 / 3600)


def test_measurement(folder: Path) -> None:
    write_measurement(measured.pair(0.5, launches=4), folder / "m.json")
    frame, report = read(folder)

    assert frame.select("key", "group", "status", "framework", "launches").rows() == [
        ("model:lenet@pytorch", "campaign", "passed", "pytorch", 4.0),
        ("model:lenet@tensorflow", "campaign", "passed", "tensorflow", 4.0),
    ]
    base, other = frame["metric_WallclockTime"]
    assert other == pytest.approx(base / 2, rel=0.02)
    assert not report.problems


def test_measurement_that_broke_off(folder: Path) -> None:
    planned = {"workloads": ("model:lenet@pytorch", "op:x"), "launches": 99}
    found = measured.measurement(complete=False, failure="the machine went away", **planned)
    write_measurement(found, folder / "m.json")
    frame, _ = read(folder)

    assert frame.select("key", "status", "cause").rows() == [
        ("model:lenet@pytorch", "missing", "the machine went away"),
        ("op:x", "missing", "the machine went away"),
    ]


def test_collection_loses_only_the_measurement_that_is_not_valid(folder: Path) -> None:
    good, bad = measured.measurement(), measured.measurement(measured.system(spec="op:bad", label="bad"))
    collection = Collection("all", [good.design.workloads, bad.design.workloads, ("op:out",), ("op:later",)])
    collection.add(good)
    collection.add(bad)
    collection.leave_out(("op:out",), "too large")
    collection.write(folder / "c.json")
    content = json.loads((folder / "c.json").read_text())
    content["measurements"][1]["systems"][0]["hashes"]["workload"] = "0" * 64
    (folder / "c.json").write_text(json.dumps(content))
    frame, report = read(folder)

    assert frame.select("key", "status", "cause").rows() == [
        ("model:lenet@pytorch", "passed", None),
        ("op:bad", "missing", "not reached"),
        ("op:out", "missing", "too large"),
        ("op:later", "missing", "not reached"),
    ]
    assert told(report) == {"malformed": 1}


@pytest.mark.parametrize("change", [{"metrics": 3}, {"recipe": {}}, {"schema_version": 9}, {"passed": "yes"}])
def test_result_that_breaks_its_schema_is_counted(folder: Path, change: dict[str, object]) -> None:
    write_result(result(), folder / "good.json")
    content = json.loads((folder / "good.json").read_text())
    (folder / "bad.json").write_text(json.dumps({**content, **change}))
    frame, report = read(folder)

    assert frame.height == 1
    assert told(report) == {"malformed": 1}
    assert "no valid result of a recipe" in report.problems[0].examples[0]
