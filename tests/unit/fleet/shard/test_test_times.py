from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.shard.test_times import is_distributed, looks_like_test_times, read_test_times

NESTED = {
    "build": {"default": {"a": 1}, "distributed": {"c": 3.5, "b": 0}},
    "other": {"inductor_distributed": {"d": 4}},
}


def written(folder: Path, content: Any, name: str = "times.json") -> Path:
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["times.json", "times.json.gz"])
def test_builds_and_configurations(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, NESTED, name)
    report = InputReport()
    assert looks_like_test_times(path)
    found = read_test_times(path, report)
    assert [(r.environment, r.configuration, dict(r.seconds)) for r in found] == [
        ("build", "default", {"a": 1.0}),
        ("build", "distributed", {"c": 3.5, "b": 0.0}),
        ("other", "inductor_distributed", {"d": 4.0}),
    ]
    assert list(found[1].seconds) == ["c", "b"]
    assert [is_distributed(r.configuration) for r in found] == [False, True, True]
    assert report.rows == {str(path): 4}
    chosen = read_test_times(path, report, environment="b*", configuration="*distributed")
    assert [r.name for r in chosen] == ["build / distributed"]


def test_seconds_by_test(tmp_path: Path) -> None:
    path = written(tmp_path, {"a.py::t": 1.5, "a.py::u": 2})
    assert looks_like_test_times(path)
    (found,) = read_test_times(path, InputReport())
    assert (found.name, dict(found.seconds)) == ("all", {"a.py::t": 1.5, "a.py::u": 2.0})


def test_faults_are_counted_and_tests_are_kept(tmp_path: Path) -> None:
    path = written(
        tmp_path, {"b": {"c": {"a": 1, "neg": -1, "text": "2", "true": True, "null": None}, "list": []}, "n": None}
    )
    report = InputReport()
    (found,) = read_test_times(path, report)
    assert found.seconds == {"a": 1.0, "neg": None, "text": None, "true": None, "null": None}
    assert report.count(ProblemKind.MALFORMED) == 6


def test_bytes_that_are_no_text_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_bytes(b'{"caf\xe9.py::t": 1.0}')
    report = InputReport()
    assert looks_like_test_times(path)
    read_test_times(path, report)
    assert report.count(ProblemKind.ENCODING) == 1
    path.write_text('{"caf\u00e9.py::t": 1.0}', encoding="utf-16")
    assert looks_like_test_times(path)
    assert dict(read_test_times(path, report)[0].seconds) == {"caf\u00e9.py::t": 1.0}


@pytest.mark.parametrize(
    "content",
    ["", "[1]", "{", '{"jobs": []}', '{"key": "a", "group": "b", "status": "passed"}', "{}", '{"a": 1, "a": 2}'],
)
def test_what_is_none(tmp_path: Path, content: str) -> None:
    assert not looks_like_test_times(written(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no JSON"),
        ("[1]", "an object of seconds"),
        ('{"a": 1, "a": 2}', "is no JSON"),
        ('{"a": {"b": {}}}', "No recording"),
    ],
)
def test_mistakes(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(FleetError, match=message):
        read_test_times(written(tmp_path, content), InputReport())


def test_nothing_that_fits(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="it has 3, such as 'build / default'"):
        read_test_times(written(tmp_path, NESTED), InputReport(), configuration="none")


def test_folders_and_missing_files(tmp_path: Path) -> None:
    assert not looks_like_test_times(tmp_path)
    assert not looks_like_test_times(tmp_path / "none.json")
