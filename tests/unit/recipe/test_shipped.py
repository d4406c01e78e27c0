from __future__ import annotations

from pathlib import Path

import pytest

from deep500.recipe.loading import load_recipe
from deep500.recipe.shipped import shipped_recipes


def test_recipes_that_come_with_deep500_are_found() -> None:
    found = shipped_recipes()

    assert {"cifar10_resnet44", "digits_lenet", "digits_mlp"} <= set(found)
    assert "recipe" not in found
    assert all(isinstance(path, Path) and path.is_file() for path in found.values())


@pytest.mark.parametrize("name", ["digits_lenet", "digits_mlp"])
def test_recipe_by_name_needs_no_framework_to_be_read(name: str) -> None:
    recipe = load_recipe(name)

    assert recipe.name == name
    assert isinstance(recipe["executor"], str)
    assert isinstance(recipe["optimizer"], str)


def test_recipe_of_the_founding_document() -> None:
    pytest.importorskip("torch")

    recipe = load_recipe("cifar10_resnet44")

    assert recipe["model_kwargs"] == {"depth": 44}
    assert recipe["optimizer_args"] == (0.1, 0.9)
    assert recipe["executor"].__module__ == "deep500.frameworks.pytorch.executor"
    assert str(recipe["executor_kwargs"]["device"]) == "gpu:0"
    assert recipe.metrics[0][1] == 93.0
