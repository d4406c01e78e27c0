from __future__ import annotations

from typing import Any

import pytest

import deep500.frameworks.reference as reference
from deep500.core.device import GPUDevice
from deep500.core.errors import DeviceError, RecipeError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.networks.creation import create_model
from deep500.recipe.build import build_recipe
from deep500.recipe.recipe import Recipe
from deep500.training.events.progress_bar import TerminalBarEvent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.trainer import Trainer
from tests.unit.recipe.support import Constant, native, small_parts


def build(**changes: Any) -> Any:
    return build_recipe(Recipe(*small_parts(**changes), [(Constant(1), None)]))


def test_parts_are_what_the_recipe_says() -> None:
    built = build(seed=5, events=["batch_hash"])

    assert built.executor.framework == "reference"
    assert (built.optimizer.learning_rate, built.optimizer.momentum) == (0.1, 0.5)
    assert (type(built.train_sampler), type(built.validation_sampler)) == (ShuffleSampler, OrderedSampler)
    assert (built.train_sampler.batch_size, built.validation_sampler.sample_count) == (8, 24)
    assert built.output == "output"
    assert list(built.executor.network.losses) == ["loss"]
    assert len(built.events) == 1
    assert built.seeds == {"recipe": 5, "initialisation": 5, "train_sampler": 5, "validation_sampler": 5}
    expected = create_model("mlp", shape=(1, 2, 2), classes=3, hidden=(6,), seed=5)
    assert built.executor.network.weights_hash() == expected.weights_hash()


def test_seeds_can_be_given_apart() -> None:
    built = build(
        seed=5,
        model_kwargs={"seed": 1},
        train_sampler_args=(2,),
        validation_sampler="shuffle",
        validation_sampler_kwargs={"seed": 3, "drop_last_batch": False},
    )

    assert built.seeds == {"recipe": 5, "initialisation": 1, "train_sampler": 2, "validation_sampler": 3}


def test_sampler_keywords_arrive() -> None:
    assert build(train_sampler_kwargs={"drop_last_batch": False}).train_sampler.drop_last_batch is False


def test_batch_is_symbolic() -> None:
    assert str(build().executor.network.inputs["input"]) == "float32[batch, 1, 2, 2]"


def test_own_network_has_no_seed() -> None:
    network = create_model("mlp", shape=(1, 2, 2), classes=3)

    assert build(model=network, model_kwargs=None).seeds["initialisation"] is None


def test_executor_gets_its_device() -> None:
    with pytest.raises(DeviceError):
        build(executor=reference.from_model, executor_kwargs={"device": GPUDevice()})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"optimizer": native("tensorflow")},
            "'optimizer' is tensorflow's MomentumOptimizer.*runs reference.*--framework",
        ),
        ({"executor": lambda network: 3}, "must make a GraphExecutor"),
        ({"executor_kwargs": {"devise": "cpu"}}, "Did you mean 'device'"),
        ({"optimizer_kwargs": {"lr": 0.1}}, "arguments for 'optimizer'.*It takes: learning_rate"),
        ({"train_sampler_kwargs": {"sed": 1}}, "arguments for 'train_sampler'.*'seed'"),
        ({"dataset_kwargs": {"a": 1}}, "'dataset' is a tuple, which takes no arguments"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        build(**changes)


def test_network_with_other_input_is_refused() -> None:
    data = tuple(NumpyDataset([[1.0, 2.0]], "pixels", [0], "label") for _ in range(2))

    with pytest.raises(RecipeError, match=r"input 'pixels'.*Its inputs: input.*input_node"):
        build(dataset=data)


def test_unlabelled_data_are_refused() -> None:
    data = tuple(NumpyDataset([[1.0, 2.0]], "input") for _ in range(2))

    with pytest.raises(RecipeError, match="no labels"):
        build(dataset=data)


def test_each_build_has_events_of_its_own() -> None:
    recipe = Recipe(*small_parts(events=[TerminalBarEvent()]), [(Constant(1), None)])

    assert build_recipe(recipe).events[0] is not build_recipe(recipe).events[0]


def test_mixed_labels_with_their_loss() -> None:
    built = build(
        loss="SoftLabelCrossEntropyLoss",
        train_transformations=[{"name": "mixup", "classes": 3}],
        test_transformations=[{"name": "one_hot", "classes": 3}],
    )
    stats = Trainer(built.train_sampler, built.validation_sampler, built.executor, built.optimizer).run_loop(20, [])

    assert str(built.executor.network.inputs["label"]) == "float32[batch, 3]"
    assert stats.epochs[-1].test is not None
    assert stats.epochs[-1].test.accuracy_percent > 90


def test_a_second_loss_is_refused() -> None:
    network = create_model("mlp", shape=(1, 2, 2), classes=3)
    network.append_loss("SoftmaxCrossEntropyLoss")
    with pytest.raises(RecipeError, match="'loss' names a loss, and the network brings one"):
        build(model=network, model_kwargs=None, loss="SoftmaxCrossEntropyLoss")
