from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import RecipeError
from deep500.recipe.result import MetricResult, check_writable, write_result
from tests.unit.recipe.support import check_schema, result


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"complete": False, "failure": "interrupted", "ended": None, "metrics": []},
        {"metrics": [MetricResult("Loss", float("nan"), "", "lower", 1.0, float("nan"), False)]},
        {"metrics": [MetricResult("Loss", float("inf"), "", "lower", None, None, None)]},
        {"first_epoch_batches_hash": "a" * 64, "device": "gpu:1"},
    ],
)
def test_result_keeps_its_schema(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_result(result(**changes), tmp_path / "result.json")

    check_schema(json.loads((tmp_path / "result.json").read_text()))


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"extra": 1},
        {"configuration_hash": "abc"},
        {"started": "yesterday"},
        {"complete": False},
        {"failure": "it diverged"},
        {"metrics": [{"name": "x"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_schema_refuses(change: dict[str, Any]) -> None:
    import jsonschema

    with pytest.raises(jsonschema.ValidationError):
        check_schema({**result().to_dict(), **change})


@pytest.mark.parametrize("key", list(result().to_dict()))
def test_schema_asks_for_every_key(key: str) -> None:
    import jsonschema

    content = result().to_dict()
    del content[key]

    with pytest.raises(jsonschema.ValidationError, match=key):
        check_schema(content)


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({}, True),
        ({"complete": False}, False),
        ({"failure": "diverged"}, False),
        ({"metrics": [MetricResult("A", 1.0, "", "lower", None, None, None)]}, True),
        ({"metrics": [MetricResult("A", 1.0, "", "lower", 0.5, -0.5, False)]}, False),
    ],
)
def test_passed(changes: dict[str, Any], passed: bool) -> None:
    assert result(**changes).passed is passed


def test_non_numbers_become_texts() -> None:
    content = result(statistics={"loss": [float("nan"), float("-inf"), 1.0]}).to_dict()

    assert content["statistics"] == {"loss": ["nan", "-inf", 1.0]}


def test_file_replaces_an_older_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")
    mask = os.umask(0o027)
    try:
        write_result(result(), path)
    finally:
        os.umask(mask)

    assert json.loads(path.read_text())["passed"] is True
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_link_is_kept(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "result.json")

    write_result(result(), tmp_path / "link.json")

    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "result.json").read_text())


def test_failing_write_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")

    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises(RecipeError, match=r"cannot be written to .*result.json: No space left"):
        write_result(result(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such/folder/r.json", "No such file or directory"),
        ("", "not the name of a file"),
        ("folder/", "not the name of a file"),
        (".", "it is a folder"),
        ("file/r.json", "Not a directory"),
        ("/dev/null", "not a regular file"),
        ("a\0b", "cannot be written"),
        ("x" * 5000, "cannot be written"),
    ],
)
def test_unwritable_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()

    with pytest.raises(RecipeError, match=message):
        check_writable(name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "result.json")

    assert not list(tmp_path.iterdir())
