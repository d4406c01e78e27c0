from __future__ import annotations

import json
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import CheckpointError, RecipeError
from deep500.recipe.recipe import Recipe
from deep500.recipe.runner import execute_recipe
from deep500.training.metrics.test_accuracy import TestAccuracy
from tests.unit.recipe.support import check_schema, small_parts


@pytest.fixture(autouse=True)
def statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the statistics of several runs, which have tests of their own."""
    module = types.ModuleType("several_runs")
    module.run_statistics = lambda values: {name: {"runs": len(v)} for name, v in values.items()}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "deep500.training.validation.several_runs", module)
    if "deep500.training.validation" not in sys.modules:
        monkeypatch.setitem(sys.modules, "deep500.training.validation", types.ModuleType("validation"))


def recipe(acceptable: float = 0.0, **changes: Any) -> Recipe:
    return Recipe(*small_parts(**changes), [(TestAccuracy(), acceptable)])


def test_each_seed_is_a_run_of_its_own(tmp_path: Path) -> None:
    result = execute_recipe(recipe(runs=3, seed=5), output=tmp_path / "r.json")
    single = [execute_recipe(recipe(seed=seed)).metrics[0].value for seed in (5, 6, 7)]

    assert result.runs is not None
    assert result.runs["seeds"] == [5, 6, 7]
    assert result.runs["values"] == {"TestAccuracy": single}
    assert result.runs["statistics"] == {"TestAccuracy": {"runs": 3}}
    content = json.loads((tmp_path / "r.json").read_text())
    check_schema(content)
    assert content["passed"] is all(result.runs["passed"])


def test_one_run_that_fails_fails_all() -> None:
    values = [execute_recipe(recipe(seed=seed, epochs=1)).metrics[0].value or 0.0 for seed in range(4)]
    between = sorted(values)[0] + 1e-6
    result = execute_recipe(recipe(between, runs=4, epochs=1))

    assert result.runs is not None
    assert result.runs["passed"] == [value >= between for value in values]
    assert not result.passed


def test_finished_runs_are_not_trained_again(tmp_path: Path) -> None:
    options = {"checkpoint": tmp_path / "c", "resume": tmp_path / "c"}
    first = execute_recipe(recipe(runs=2), **options)
    again = execute_recipe(recipe(runs=2), **options)
    more = execute_recipe(recipe(runs=3), **options)

    assert again.runs is not None
    assert first.runs == again.runs
    assert more.runs is not None
    assert more.runs["values"]["TestAccuracy"][:2] == again.runs["values"]["TestAccuracy"]
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["run-0", "run-1", "run-2"]


def test_fixed_seed_has_one_run() -> None:
    fixed, mutable = small_parts(runs=2)
    with pytest.raises(RecipeError, match="'seed' is FIXED"):
        execute_recipe(Recipe({**fixed, "seed": 1}, mutable, [(TestAccuracy(), 0.0)]))


def test_folders_that_hold_no_runs(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoint of several runs"):
        execute_recipe(recipe(runs=2), resume=tmp_path / "nowhere")
    execute_recipe(recipe(), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="holds no checkpoint of several runs"):
        execute_recipe(recipe(runs=2), resume=tmp_path)
    with pytest.raises(RecipeError, match="--checkpoint was given as an empty text"):
        execute_recipe(recipe(runs=2), checkpoint="")


def test_a_run_that_had_written_nothing_begins(tmp_path: Path) -> None:
    whole = execute_recipe(recipe(runs=2), checkpoint=tmp_path)
    shutil.rmtree(tmp_path / "run-1")
    (tmp_path / "run-1").mkdir()
    again = execute_recipe(recipe(runs=2), resume=tmp_path)
    assert again.runs is not None
    assert whole.runs is not None
    assert again.runs["values"] == whole.runs["values"]


def test_seeds_beyond_the_largest() -> None:
    with pytest.raises(RecipeError, match="accepted are seeds up to"):
        execute_recipe(recipe(runs=2, seed=2**64 - 1))


def test_each_run_s_own_result_is_kept(tmp_path: Path) -> None:
    result = execute_recipe(recipe(runs=2, epochs=1), output=tmp_path / "r.json")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "r.run-0.json", "r.run-1.json"]
    assert result.runs is not None
    for number, value in enumerate(result.runs["values"]["TestAccuracy"]):
        content = json.loads((tmp_path / f"r.run-{number}.json").read_text())
        assert content["runs"] is None
        assert content["metrics"][0]["value"] == value
    assert result.runs["rule"] == "every run passes"
