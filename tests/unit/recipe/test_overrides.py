from __future__ import annotations

from typing import Any

import pytest

import deep500.frameworks.reference as reference
from deep500.core.device import CPUDevice, GPUDevice
from deep500.core.errors import DeviceError, RecipeError, UnknownNameError
from deep500.recipe.overrides import override_recipe, parse_assignment
from deep500.recipe.recipe import Recipe
from tests.unit.recipe.support import Constant, native, small_parts


def recipe(**changes: Any) -> Recipe:
    return Recipe(*small_parts(**changes), [(Constant(1), None)], name="small")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("epochs=3", ("epochs", 3)),
        (" epochs = 3 ", ("epochs", 3)),
        ("optimizer=momentum", ("optimizer", "momentum")),
        ("optimizer_args=(0.1, 0.9)", ("optimizer_args", (0.1, 0.9))),
        ("model_kwargs={'hidden': [3]}", ("model_kwargs", {"hidden": [3]})),
        ("a.b=x=y", ("a.b", "x=y")),
        ("executor_kwargs.device=gpu:0", ("executor_kwargs.device", "gpu:0")),
        ("epochs=", ("epochs", "")),
        ("x=None", ("x", None)),
        ("x=__import__('os')", ("x", "__import__('os')")),
    ],
)
def test_assignment(text: str, expected: tuple[str, Any]) -> None:
    assert parse_assignment(text) == expected


@pytest.mark.parametrize("text", ["epochs", "=3", "", ".a=3", "a.=3", "a..b=3"])
def test_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(RecipeError, match="accepted is key=value"):
        parse_assignment(text)


def test_changes_reach_into_dicts_and_tuples() -> None:
    before = recipe(optimizer_kwargs=None, optimizer_args=(0.1, 0.9), train_sampler_kwargs={"seed": 1})

    after = override_recipe(
        before, changes=[("optimizer_args.1", 0.5), ("train_sampler_kwargs.drop_last_batch", False), ("batch_size", 4)]
    )

    assert after["optimizer_args"] == (0.1, 0.5)
    assert after["train_sampler_kwargs"] == {"seed": 1, "drop_last_batch": False}
    assert after["batch_size"] == 4
    assert before["optimizer_args"] == (0.1, 0.9)
    assert before["train_sampler_kwargs"] == {"seed": 1}


def test_later_change_wins() -> None:
    assert override_recipe(recipe(), changes=[("batch_size", 4), ("batch_size", 5)])["batch_size"] == 5


def test_optional_key_can_be_added() -> None:
    assert override_recipe(recipe(), changes={"validation_sampler": "ordered"})["validation_sampler"] == "ordered"
    assert override_recipe(recipe(), changes={"executor_kwargs.device": "cpu"})["executor_kwargs"] == {"device": "cpu"}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("epochs", 3, r"'epochs' is FIXED in the recipe 'small' and cannot be changed \(epochs=3\)"),
        ("model_kwargs.hidden", 3, "'model_kwargs' is FIXED"),
        ("dataset_kwargs.test_samples", 3, "'dataset' is FIXED.*lists no 'dataset_kwargs' as MUTABLE"),
        ("optimiser", 3, "unknown key 'optimiser'. Did you mean 'optimizer'"),
        ("batch_size", "many", r"MUTABLE\['batch_size'\] is 'many'"),
        ("optimizer_args.0", 0.1, "'optimizer_args' has no entries, not '0'"),
        ("batch_size.x", 3, "'batch_size' is 8; 'x' cannot be set in it"),
        ("optimizer_kwargs.momentum.x", 3, "'optimizer_kwargs.momentum' is 0.5"),
    ],
)
def test_change_that_cannot_be_is_refused(key: str, value: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        override_recipe(recipe(), changes={key: value})


def test_index_out_of_range_is_refused() -> None:
    with pytest.raises(RecipeError, match="'optimizer_args' has entries 0 to 1, not '2'"):
        override_recipe(recipe(optimizer_kwargs=None, optimizer_args=(0.1, 0.9)), changes={"optimizer_args.2": 1})


def test_seed_and_device() -> None:
    after = override_recipe(recipe(executor_kwargs={"device": GPUDevice(1)}), seed=3, device="cpu")

    assert (after["seed"], after["executor_kwargs"]) == (3, {"device": CPUDevice()})


def test_fixed_seed_and_device_are_refused() -> None:
    fixed, mutable = small_parts()
    made = Recipe({**fixed, "seed": 1, "executor_kwargs": {}}, mutable, [(Constant(1), None)])

    with pytest.raises(RecipeError, match="'seed' is FIXED"):
        override_recipe(made, seed=1)
    with pytest.raises(RecipeError, match="'executor_kwargs' is FIXED"):
        override_recipe(made, device="cpu")


def test_wrong_device_is_refused() -> None:
    with pytest.raises(DeviceError, match="'tpu' is not a device"):
        override_recipe(recipe(), device="tpu")


def test_framework_changes_executor_and_optimizer() -> None:
    made = recipe(executor="pytorch", optimizer=native("pytorch"))

    after = override_recipe(made, framework="reference")

    assert after["executor"] == "reference"
    assert after["optimizer"] is reference.MomentumOptimizer


def test_native_optimizer_of_the_framework_is_found() -> None:
    pytest.importorskip("torch")

    after = override_recipe(recipe(optimizer=native("tensorflow")), framework="pytorch")

    assert after["executor"] == "pytorch"
    assert after["optimizer"].__module__ == "deep500.frameworks.pytorch.optimizers"
    assert after["optimizer"].__name__ == "MomentumOptimizer"


def test_framework_that_it_has_changes_nothing() -> None:
    made = recipe(executor=reference.from_model, optimizer=native("reference"))

    assert override_recipe(made, framework="reference").configuration_hash == made.configuration_hash


def test_written_once_optimizer_stays() -> None:
    assert override_recipe(recipe(), framework="reference")["optimizer"] == "momentum"


def test_optimizer_that_the_framework_lacks_is_named() -> None:
    with pytest.raises(RecipeError, match=r"'reference' has no optimizer SpecialOptimizer.*from 'pytorch'.*--set"):
        override_recipe(recipe(optimizer=native("pytorch", "SpecialOptimizer")), framework="reference")


def test_fixed_executor_and_optimizer_refuse_another_framework() -> None:
    fixed, mutable = small_parts(executor=None)
    with_executor = Recipe({**fixed, "executor": "pytorch"}, mutable, [(Constant(1), None)])
    fixed, mutable = small_parts(optimizer=None)
    with_optimizer = Recipe({**fixed, "optimizer": native("pytorch")}, mutable, [(Constant(1), None)])

    with pytest.raises(RecipeError, match=r"'executor' is FIXED.*framework 'reference'"):
        override_recipe(with_executor, framework="reference")
    with pytest.raises(RecipeError, match=r"'optimizer' is FIXED.*pytorch's MomentumOptimizer"):
        override_recipe(with_optimizer, framework="reference")


def test_unknown_framework_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'tensorflow'"):
        override_recipe(recipe(), framework="tensorflo")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("batch_size=" + "9" * 5000, r"'batch_size'\] is a text of 5000 characters; accepted is a whole number"),
        ("batch_size=0x" + "f" * 5000, r"'batch_size'\] is an int; accepted is a whole number from 1 to 2\*\*63 - 1"),
        ("optimizer_args." + "9" * 5000 + "=3", "'optimizer_args' has no entries, not a text of 5000 characters"),
        ("optimizer_kwargs." + "a." * 5000 + "a=3", "reaches 5001 levels deep; accepted are up to 32"),
        ("optimizer_args=" + "[" * 90 + "]" * 90, "'optimizer_args'.*nested deeper than 64 levels"),
        ("epochs=a\nb", r"\(epochs=a b\)"),
        ("epochs=a\x1bb", r"\(epochs=a\\x1bb\)"),
        ("=" + "\n" * 3, r"'=\\n\\n\\n' does not set anything"),
    ],
    ids=range(8),
)
def test_changes_beyond_all_bounds_are_told_in_one_line(change: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        override_recipe(recipe(), changes=[parse_assignment(change)])

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 3000
