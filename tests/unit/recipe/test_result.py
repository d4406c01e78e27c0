from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deep500.measure.region_breakdown import KEPT_SAMPLES
from deep500.recipe.result import SCHEMA_FILE, SCHEMA_VERSION, MetricResult, write_result
from tests.unit.recipe.support import check_schema, region_row, result

ENVIRONMENT = result().environment
REGIONS = result().regions


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"complete": False, "failure": "interrupted", "ended": None, "metrics": []},
        {"metrics": [MetricResult("Loss", float("nan"), "", "lower", 1.0, float("nan"), False)]},
        {"metrics": [MetricResult("Loss", float("inf"), "", "lower", None, None, None)]},
        {"first_epoch_batches_hash": "a" * 64, "device": "gpu:1"},
        {"regions": {**REGIONS, "rows": [region_row("a"), region_row("a", "b", calls=3, samples_s=[0.25, 0.5, 0.25])]}},
        {
            "regions": {
                **REGIONS,
                "rows": [region_row("a", share_of_parent=None, min_s=None, median_s=None, max_s=None)],
            }
        },
        {"environment": {**ENVIRONMENT, "sections": {"gpu": {"unavailable": "the probe failed"}}}},
    ],
)
def test_result_keeps_its_schema(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_result(result(**changes), tmp_path / "result.json")

    check_schema(json.loads((tmp_path / "result.json").read_text()))


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 1},
        {"experiment_hash": "abc"},
        {"environment": {}},
        {"environment": {**ENVIRONMENT, "extra": 1}},
        {"environment": {**ENVIRONMENT, "sections": {"cpu": "unavailable"}}},
        {"noise": {}},
        {"noise": "unavailable"},
        {"regions": {}},
        {"regions": {**REGIONS, "elapsed_s": -1.0}},
        {"regions": {**REGIONS, "extra": 1}},
        {"regions": {**REGIONS, "rows": [{"path": ["a"], "calls": 1}]}},
        {"regions": {**REGIONS, "rows": [region_row()]}},
        {"regions": {**REGIONS, "rows": [region_row("a", total_s=-1.0)]}},
        {"regions": {**REGIONS, "rows": [region_row("a", calls=1.5)]}},
        {"regions": {**REGIONS, "rows": [region_row("a", extra=1)]}},
        {"extra": 1},
        {"configuration_hash": "abc"},
        {"started": "yesterday"},
        {"complete": False},
        {"failure": "it diverged"},
        {"metrics": [{"name": "x"}]},
    ],
    ids=str,
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


def test_files_of_version_1_have_another_schema() -> None:
    assert result().to_dict()["schema_version"] == SCHEMA_VERSION == 4
    assert json.loads(SCHEMA_FILE.read_text())["$id"].endswith("recipe-result-4.json")


def test_table_of_samples_is_as_long_as_the_schema_allows() -> None:
    schema = json.loads(SCHEMA_FILE.read_text())

    assert schema["$defs"]["region"]["properties"]["samples_s"]["maxItems"] == KEPT_SAMPLES
