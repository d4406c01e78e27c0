from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deep500.frameworks.reference as reference
from deep500.core.errors import InvalidInputError, MissingDependencyError, RecipeError, UnknownNameError
from deep500.core.event import Event
from deep500.core.requirement import Requirement
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.recipe import resolve
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.sampler import Sampler
from deep500.training.samplers.ordered import OrderedSampler
from tests.unit.recipe.support import native, small_data

NOTHING: resolve.Arguments = ((), {})


class Demanding(Event):
    def __init__(self, value: int) -> None:
        self.value = value


def rate(rate: float = 1.0, *, sign: int = 1) -> float:
    return 1 / rate * sign


def test_names_become_plugins() -> None:
    assert resolve.find_executor("reference") is reference.from_model
    assert resolve.find_optimizer("momentum") is MomentumOptimizer
    assert resolve.find_sampler("train_sampler", "ordered") is OrderedSampler
    assert isinstance(resolve.find_event("batch_hash"), BatchHashEvent)
    assert resolve.find_event(("early_stopping", {"patience": 7})).patience == 7
    assert resolve.find_event({"name": "early_stopping", "patience": 7}).patience == 7
    assert resolve.find_metric("test_accuracy").unit == "%"
    assert [len(p) for p in resolve.find_dataset("digits", ((), {"test_samples": 7}))()] == [1790, 7]


def test_objects_stay_what_they_are() -> None:
    event, data = BatchHashEvent(), small_data()

    assert resolve.find_executor(reference.from_model) is reference.from_model
    assert resolve.find_optimizer(reference.MomentumOptimizer) is reference.MomentumOptimizer
    assert resolve.find_event(event) is event
    assert resolve.find_dataset(data, NOTHING)() == data
    assert resolve.find_dataset(lambda count: data, ((3,), {}))() == data


@pytest.mark.parametrize(
    ("find", "name", "hint"),
    [
        (resolve.find_executor, "pytorhc", "'pytorch'"),
        (resolve.find_optimizer, "momentun", "'momentum'"),
        (lambda name: resolve.find_sampler("train_sampler", name), "shufle", "'shuffle'"),
        (resolve.find_event, "batch-hash", "'batch_hash'"),
        (lambda name: resolve.find_dataset(name, NOTHING), "digit", "'digits'"),
        (lambda name: resolve.find_model(name, NOTHING), "lennet", "'lenet'"),
    ],
)
def test_unknown_name_is_refused_with_a_near_miss(find: Any, name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError, match=f"Did you mean {hint}"):
        find(name)


@pytest.mark.parametrize(
    ("find", "value", "message"),
    [
        (resolve.find_optimizer, OrderedSampler, "which is not an Optimizer"),
        (
            lambda value: resolve.find_sampler("train_sampler", value),
            MomentumOptimizer,
            "'train_sampler'.*not a Sampler",
        ),
        (resolve.find_event, 3, "which is not an event"),
        (resolve.find_event, {"patience": 3}, "a dict with a name"),
        (resolve.find_event, ("early_stopping", {"patients": 3}), "'events'.*patients"),
        (resolve.find_event, (BatchHashEvent(), {"a": 3}), "go with a name or a class"),
        (resolve.find_event, Demanding, "arguments for 'events'.*'value'"),
        (lambda value: resolve.find_dataset(value, NOTHING), {"a": 1}, "must give a pair"),
        (lambda value: resolve.find_dataset(value, NOTHING), (1, 2), "must give a pair"),
        (lambda value: resolve.find_dataset(value, NOTHING)(), lambda: 3, "must give a pair"),
        (lambda value: resolve.find_dataset(value, ((1,), {})), small_data(), "takes no arguments"),
        (lambda value: resolve.find_dataset(value, ((1, 2, 3), {}))(), "digits", "arguments for 'dataset'.*too many"),
        (lambda value: resolve.find_model(value, ((3,), {})), "mlp", "'model_kwargs', not 'model_args'"),
        (lambda value: resolve.find_model(value, ((), {"a": 1})), "net.onnx", "does not exist"),
    ],
)
def test_what_is_none_is_refused(find: Any, value: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        find(value)


def test_missing_framework_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requirement, "is_installed", lambda self: False)

    with pytest.raises(MissingDependencyError, match=r"pip install 'deep500\[pytorch\]'"):
        resolve.find_executor("pytorch")


def test_framework_of() -> None:
    assert resolve.framework_of("tensorflow") == "tensorflow"
    assert resolve.framework_of(reference.from_model) == "reference"
    assert resolve.framework_of(native("tensorflow")) == "tensorflow"
    assert resolve.framework_of(MomentumOptimizer) is None
    assert resolve.framework_of(len) is None


def test_model_by_name_fits_the_data() -> None:
    network = resolve.find_model("mlp", ((), {"hidden": (5,)}))(small_data()[0], 3)

    assert str(network.inputs["input"]) == "float32[batch, 1, 2, 2]"
    assert str(network.outputs["output"]) == "float32[batch, 3]"
    assert network.weights_hash() == create_model("mlp", hidden=(5,), classes=3, shape=(1, 2, 2), seed=3).weights_hash()


def test_model_keyword_outweighs_what_the_data_say() -> None:
    network = resolve.find_model("mlp", ((), {"classes": 7, "seed": 9}))(small_data()[0], 3)

    assert str(network.outputs["output"]) == "float32[batch, 7]"
    assert network.weights_hash() == create_model("mlp", classes=7, shape=(1, 2, 2), seed=9).weights_hash()


def test_wrong_model_keyword_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no argument 'depht'"):
        resolve.find_model("resnet", ((), {"depht": 8}))(small_data()[0], 0)


def test_own_network_is_not_changed(tmp_path: Any) -> None:
    network = create_model("mlp", shape=(1, 2, 2), classes=3)
    network.save(tmp_path / "net.onnx")

    for model in (network, lambda: network, str(tmp_path / "net.onnx"), tmp_path / "net.onnx"):
        made = resolve.find_model(model, NOTHING)(small_data()[0], 0)
        made.append_loss("SoftmaxCrossEntropyLoss")

        assert isinstance(made, Network)
        assert made.weights_hash() == network.weights_hash()
        assert not network.losses


def test_regression_has_as_many_outputs_as_a_label_has_numbers() -> None:
    from deep500.datasets.numpy_dataset import NumpyDataset

    data = NumpyDataset([[1.0, 2.0]], "input", [[1.0, 2.0, 3.0, 4.0]], "label")

    assert resolve.find_model("mlp", NOTHING)(data, 0).outputs["output"].shape == ("batch", 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), {"rat": 1}), r"arguments for 'optimizer'.*'rat'\. Did you mean 'rate'\? It takes: rate, sign"),
        (((1, 2), {}), "too many positional"),
        (((1,), {"rate": 2}), "multiple values"),
        (((), {"rate": "a"}), "are not accepted"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: resolve.Arguments, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        resolve.call_with_arguments(rate, "optimizer", (), arguments)


def test_error_without_arguments_is_not_the_users() -> None:
    with pytest.raises(ValueError, match="deep"):
        resolve.call_with_arguments(lambda: int("deep"), "optimizer", (), NOTHING)


@pytest.mark.parametrize("value", [object(), ["a"], ("mlp",)], ids=["object", "list", "tuple"])
@pytest.mark.parametrize("arguments", [NOTHING, ((), {"hidden": 3})], ids=["bare", "with arguments"])
def test_what_is_no_model_is_told_first(value: Any, arguments: resolve.Arguments) -> None:
    with pytest.raises(RecipeError, match=r"'model' is .* which is not a model; accepted is a model's name"):
        resolve.find_model(value, arguments)


def test_model_file_that_is_not_there_is_told_first(tmp_path: Path) -> None:
    (tmp_path / "folder.onnx").mkdir()

    for name, why in (("nope.onnx", "does not exist"), ("folder.onnx", "is a folder")):
        for value in (tmp_path / name, str(tmp_path / name)):
            with pytest.raises(RecipeError, match=f"'model' is the file '.*{name}', which {why}"):
                resolve.find_model(value, ((), {"hidden": 3}))


def test_name_is_no_argument_of_a_model() -> None:
    with pytest.raises(RecipeError, match="'mlp' has no argument 'name'"):
        resolve.find_model("mlp", ((), {"name": "x"}))


def test_abstract_classes_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"'optimizer' is .*UpdateRuleOptimizer, which implements no update_rule"):
        resolve.find_optimizer(UpdateRuleOptimizer)
    with pytest.raises(RecipeError, match=r"'train_sampler' is .*Sampler, which implements no order"):
        resolve.find_sampler("train_sampler", Sampler)
