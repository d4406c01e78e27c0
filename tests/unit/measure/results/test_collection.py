from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import FileWriteError, MeasurementError
from deep500.measure.results.collection import Collection, read_collection
from deep500.measure.results.document import Measurement
from deep500.measure.results.files import read_measurement
from tests.unit.measure.results.support import measurement, metric, pair, system

PLANNED = [("a", "b"), ("c", "d"), ("e", "f")]


def taken(*workloads: str) -> Measurement:
    return pair(1.1, launches=6, workloads=workloads)


def filled() -> Collection:
    collection = Collection("pairs", PLANNED)
    collection.add(taken("a", "b"))
    collection.leave_out(("c", "d"), "too large")
    return collection


def test_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    collection = filled()
    for _ in range(2):  # each time the whole file
        collection.write(path)
        again = read_collection(path)
        assert (again.title, again.planned) == ("pairs", tuple(PLANNED))
        assert again.measurements == collection.measurements
        assert again.left_out == collection.left_out
        collection.add(taken("e", "f"))


def test_file_without_measurements_can_be_read(tmp_path: Path) -> None:
    Collection("pairs", PLANNED).write(tmp_path / "all.json")

    assert read_collection(tmp_path / "all.json").measurements == {}


def test_parts_are_those_of_measurement_files(tmp_path: Path) -> None:
    filled().write(tmp_path / "all.json")
    (entry,) = json.loads((tmp_path / "all.json").read_text())["measurements"]
    (tmp_path / "one.json").write_text(json.dumps(entry))

    assert read_measurement(tmp_path / "one.json") == taken("a", "b")


def test_measured_after_all_is_not_left_out_any_more() -> None:
    collection = filled()
    collection.add(taken("c", "d"))
    assert collection.left_out == {}
    collection.drop(("c", "d"))
    collection.drop(("e", "f"))
    assert list(collection.measurements) == [("a", "b")]


def test_what_was_not_planned_is_refused() -> None:
    collection = Collection("pairs", PLANNED)
    for act in (lambda: collection.add(taken("x", "y")), lambda: collection.leave_out(("x", "y"), "why")):
        with pytest.raises(MeasurementError, match="x, y is not among the 3 measurements that were planned"):
            act()


def test_what_cannot_be_read_again_is_not_taken() -> None:
    collection = Collection("pairs", [("a", "b")])
    broken = measurement(system(metrics=(metric([(float("nan"), 1.0)]),)), workloads=("a", "b"))

    with pytest.raises(MeasurementError, match="NaN or infinite"):
        collection.add(broken)
    assert collection.measurements == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content.update(kind="measurement"),
            "is a measurement (deep500 bench --output). A collection is",
        ),
        (lambda content: content.update(schema_version=2), "has schema version 2; this Deep500 knows versions up to 1"),
        (lambda content: content.pop("planned"), "is no valid collection"),
        (lambda content: content["left_out"][0].pop("reason"), "left_out[0]"),
        (lambda content: content["measurements"][0].pop("systems"), "measurement 1, is no valid measurement"),
        (
            lambda content: content["measurements"][0]["systems"][0]["identity"].update(problem="another"),
            "measurement 1, is refused: the workload hash",
        ),
        (lambda content: content["planned"].pop(0), "a, b is not among the 2 measurements"),
    ],
)
def test_file_that_was_changed_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "all.json"
    filled().write(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))

    with pytest.raises(MeasurementError) as caught:
        read_collection(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_commands_say_what_it_is(tmp_path: Path) -> None:
    filled().write(tmp_path / "all.json")

    with pytest.raises(MeasurementError, match=r"is a collection \(deep500 bench PROBLEM_SET --output\)"):
        read_measurement(tmp_path / "all.json")


def test_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileWriteError, match="The collection cannot be written"):
        filled().write(tmp_path / "no" / "all.json")
