from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deep500.recipe.result import MetricResult, write_result
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
