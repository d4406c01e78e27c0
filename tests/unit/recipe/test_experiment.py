from __future__ import annotations

from typing import Any

import pytest

from deep500.core.device import CPUDevice, GPUDevice
from deep500.recipe.experiment import experiment_description, experiment_hash
from deep500.recipe.overrides import override_recipe
from deep500.recipe.recipe import Recipe
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.samplers.shuffle import ShuffleSampler
from tests.unit.recipe.support import Constant, native, small_parts


def recipe(**changes: Any) -> Recipe:
    return Recipe(*small_parts(**changes), [(Constant(1.0), 1.0)])


def own_executor(network: Any) -> Any:
    raise AssertionError("is not called")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"executor": "pytorch"}, {"executor": "tensorflow"}),
        ({"executor": "pytorch"}, {"executor": own_executor}),
        ({"executor_kwargs": {"device": GPUDevice(1)}}, {"executor_kwargs": {"device": CPUDevice()}}),
        ({"executor_kwargs": {"device": "gpu:0"}}, {"executor_kwargs": {}}),
        ({"executor_args": ("cpu",)}, {}),
        ({"optimizer": native("pytorch")}, {"optimizer": native("tensorflow")}),
    ],
)
def test_who_runs_it_makes_no_difference(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert experiment_hash(recipe(**one)) == experiment_hash(recipe(**other))
    assert recipe(**one).configuration_hash != recipe(**other).configuration_hash


def test_recipe_under_another_framework_is_the_same_experiment() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorflow")
    import deep500.frameworks.pytorch as adapter

    mine = recipe(executor=adapter.from_model, optimizer=adapter.MomentumOptimizer, optimizer_args=(0.1, 0.9))
    other = override_recipe(mine, framework="tensorflow")

    assert other["optimizer"].__module__.startswith("deep500.frameworks.tensorflow")
    assert experiment_hash(mine) == experiment_hash(other)
    assert experiment_description(mine)["optimizer"] == {"$optimizer": "MomentumOptimizer"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"batch_size": 8}, {"batch_size": 16}),
        ({"seed": 0}, {"seed": 1}),
        ({"epochs": 1}, {"epochs": 2}),
        ({"model": "mlp"}, {"model": "lenet"}),
        ({"optimizer": native("pytorch")}, {"optimizer": native("pytorch", "AdamOptimizer")}),
        ({"optimizer": native("pytorch")}, {"optimizer": MomentumOptimizer}),  # a framework's own may differ in details
        ({"optimizer": MomentumOptimizer}, {"optimizer": AdamOptimizer}),
        ({"optimizer_kwargs": {"learning_rate": 0.1}}, {"optimizer_kwargs": {"learning_rate": 0.2}}),
        ({"train_sampler": ShuffleSampler}, {"train_sampler": "ordered"}),
        ({"executor_kwargs": {"precision": 16}}, {"executor_kwargs": {"precision": 32}}),
        ({"executor_kwargs": {"precision": 16}}, {}),
    ],
)
def test_any_other_change_is_another_experiment(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert experiment_hash(recipe(**one)) == experiment_hash(recipe(**one))
    assert experiment_hash(recipe(**one)) != experiment_hash(recipe(**other))


def test_part_that_a_key_is_in_makes_no_difference() -> None:
    fixed, mutable = small_parts()
    free = Recipe({}, {**fixed, **mutable}, [(Constant(1.0), 1.0)])

    assert experiment_hash(free) == experiment_hash(recipe())
    assert free.configuration_hash != recipe().configuration_hash


def test_description_names_all_but_the_executor() -> None:
    described = experiment_description(recipe(executor_kwargs={"device": "cpu", "precision": 16}))

    assert set(described) == {
        "model",
        "model_kwargs",
        "dataset",
        "epochs",
        "batch_size",
        "optimizer",
        "optimizer_kwargs",
        "executor_kwargs",
        "seed",
    }
    assert described["executor_kwargs"] == {"precision": 16}
    assert described["batch_size"] == 8
    assert "executor_kwargs" not in experiment_description(recipe(executor_kwargs={"device": "cpu"}))
