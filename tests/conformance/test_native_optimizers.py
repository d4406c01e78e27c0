"""Optimizers of the frameworks themselves: ours equal them, and they behind our contract equal them as they are."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.catalogue import OPTIMIZERS
from tests.conformance.optimizer_networks import batches
from tests.conformance.test_optimizers import REFUSED, Values, distance, make_executor, parameters_of

STEPS = 100
TOLERANCE = 1e-5

#: So small that it does not matter where in the divisor it is added.
SMALL = 1e-12


@dataclass(frozen=True)
class Native:
    """An optimizer of a framework.

    Attributes:
        raw: Name of the framework's class.
        raw_arguments: What it is made with besides the learning rate.
        ours: Name of the library's file that has the same formula, if one has.
        arguments: What ours is made with besides the learning rate, and the wrapped one too but for ``only_ours``.
        learning_rate: The step size.
        only_ours: Further arguments of the library's optimizer.
        why_not: Why no optimizer of the library equals it.
    """

    raw: str
    raw_arguments: Mapping[str, Any] = field(default_factory=dict)
    ours: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: float = 0.01
    only_ours: Mapping[str, Any] = field(default_factory=dict)
    why_not: str = ""


TORCH: dict[str, list[Native]] = {
    "GradientDescent": [Native("SGD", {}, "gradient_descent")],
    "MomentumOptimizer": [
        Native("SGD", {"momentum": 0.9}, "momentum", {"momentum": 0.9}),
        Native("SGD", {"momentum": 0.9, "nesterov": True}, "momentum", {"momentum": 0.9, "nesterov": True}),
    ],
    "AdaGradOptimizer": [
        Native("Adagrad", {}, "adagrad"),
        Native("Adagrad", {"initial_accumulator_value": 0.1}, "adagrad", {"initial_accumulator": 0.1}),
    ],
    "RMSPropOptimizer": [
        Native("RMSprop", {"alpha": 0.9}, "rmsprop", {}, 0.001),
        Native(
            "RMSprop",
            {"alpha": 0.95, "momentum": 0.5, "centered": True, "eps": 1e-3},
            "rmsprop",
            {"decay": 0.95, "momentum": 0.5, "centered": True, "epsilon": 1e-3},
            0.001,
        ),
    ],
    "AdamOptimizer": [
        Native("Adam", {}, "adam", {}, 0.001),
        Native("Adam", {"betas": (0.8, 0.95), "eps": 1e-3}, "adam", {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3}),
    ],
    "AdamWOptimizer": [Native("AdamW", {"weight_decay": 0.1}, "adamw", {"weight_decay": 0.1}, 0.001)],
    "AMSGradOptimizer": [Native("Adam", {"amsgrad": True}, "amsgrad", {}, 0.001, only_ours={"bias_correction": True})],
    "MuonOptimizer": [Native("", why_not="PyTorch iterates in bfloat16")],
    "LBFGSOptimizer": [Native("", why_not="PyTorch's line search is another one")],
}

KERAS: dict[str, list[Native]] = {
    "GradientDescent": [Native("SGD", {}, "gradient_descent")],
    "MomentumOptimizer": [
        Native("SGD", {"momentum": 0.9}, "momentum", {"momentum": 0.9}),
        Native("SGD", {"momentum": 0.9, "nesterov": True}, "momentum", {"momentum": 0.9, "nesterov": True}),
    ],
    "AdaGradOptimizer": [
        Native(
            "Adagrad",
            {"initial_accumulator_value": 0.1, "epsilon": SMALL},
            "adagrad",
            {"initial_accumulator": 0.1, "epsilon": SMALL},
        )
    ],
    "RMSPropOptimizer": [
        Native("RMSprop", {"rho": 0.9, "epsilon": SMALL}, "rmsprop", {"epsilon": SMALL}, 0.001),
        Native("RMSprop", {"rho": 0.9, "epsilon": 1e-3, "centered": True}, why_not="epsilon is under the root"),
    ],
    "AdamOptimizer": [Native("Adam", {"epsilon": SMALL}, "adam", {"epsilon": SMALL}, 0.001)],
    "AdamWOptimizer": [
        Native(
            "AdamW", {"epsilon": SMALL, "weight_decay": 0.1}, "adamw", {"epsilon": SMALL, "weight_decay": 0.1}, 0.001
        )
    ],
    "AMSGradOptimizer": [
        Native(
            "Adam",
            {"amsgrad": True, "epsilon": SMALL},
            "amsgrad",
            {"epsilon": SMALL},
            0.001,
            only_ours={"bias_correction": True},
        )
    ],
    "LionOptimizer": [Native("Lion", {"weight_decay": 0.1}, "lion", {"weight_decay": 0.1}, 1e-4)],
    "LAMBOptimizer": [Native("Lamb", {"epsilon": 1e-6}, "lamb", {"epsilon": 1e-6, "weight_decay": 0.0}, 0.001)],
    "MuonOptimizer": [
        Native(
            "Muon",
            {
                "rms_rate": None,
                "adam_lr_ratio": 0.015,
                "adam_beta_2": 0.95,
                "epsilon": SMALL,
                "weight_decay": None,
                "adam_weight_decay": None,
                "exclude_embeddings": False,
            },
            "muon",
            {"epsilon": SMALL},
            0.002,
        )
    ],
}

NATIVE = {"pytorch": TORCH, "tensorflow": KERAS}
NAMES = [(framework, name) for framework, natives in NATIVE.items() for name in natives]
CASES = [
    pytest.param(framework, name, native, id=f"{framework}-{name}-{number}")
    for framework, natives in NATIVE.items()
    for name, entries in natives.items()
    for number, native in enumerate(entries)
]


def make_raw(executor: GraphExecutor, native: Native) -> Callable[[], None]:
    """Return what updates the parameters of an executor by the framework's optimizer, used as its manual says."""
    names = executor.network.get_params()
    parameters = [executor.stored_tensor(name) for name in names]
    if executor.framework == "pytorch":
        import torch

        optimizer = getattr(torch.optim, native.raw)(parameters, lr=native.learning_rate, **native.raw_arguments)
        return lambda: optimizer.step() and None
    import keras

    keras_optimizer = getattr(keras.optimizers, native.raw)(learning_rate=native.learning_rate, **native.raw_arguments)
    return lambda: keras_optimizer.apply([executor.gradient_tensor(name) for name in names], parameters)


def executor_for(framework: str, native: Native) -> GraphExecutor:
    """Return a float32 executor; for Muon, which has a factor that Keras' lacks, of matrices that are not high."""
    if native.raw != "Muon":
        return make_executor(framework, "float32")
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    network = create_model("mlp", shape=(2, 6, 6), hidden=(6,), classes=3)
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = importlib.import_module(f"deep500.frameworks.{framework}").from_model(network)
    executor.network.train()
    return executor


def data_for(executor: GraphExecutor) -> list[dict[str, np.ndarray]]:
    image, label = list(executor.network.inputs)
    return [{image: batch["x"], label: batch["label"]} for batch in batches(STEPS, "float32", size=32, noise=0.5)]


def trained(kind: Any, framework: str, native: Native, arguments: Mapping[str, Any]) -> Values:
    """Return the parameters after 100 steps of an optimizer behind our contract."""
    executor = executor_for(framework, native)
    optimizer = kind(executor, "loss", native.learning_rate, **arguments)
    for inputs in data_for(executor):
        optimizer.step(inputs)
    return parameters_of(executor)


def trained_raw(framework: str, native: Native) -> Values:
    """Return the parameters after 100 steps of the framework's optimizer itself."""
    executor = executor_for(framework, native)
    start, update = parameters_of(executor), make_raw(executor, native)
    for inputs in data_for(executor):
        executor.inference_and_backprop(inputs)
        update()
    assert distance(start, parameters_of(executor)) > 1e-3
    return parameters_of(executor)


@pytest.mark.parametrize("framework", NATIVE)
def test_every_native_optimizer_is_compared(framework: str) -> None:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    module = importlib.import_module(f"deep500.frameworks.{framework}.optimizers")
    public = set(module.__all__) - {"NativeOptimizer", "KerasOptimizer"}
    assert public == set(NATIVE[framework]), "add a case to NATIVE in tests/conformance/test_native_optimizers.py"


@pytest.mark.parametrize(("framework", "name", "native"), CASES)
def test_parameters_are_those_of_the_frameworks_own(framework: str, name: str, native: Native) -> None:
    """Over 100 steps in float32: the library's, and the framework's behind our contract."""
    if not native.raw:
        pytest.skip(native.why_not)
    expected = trained_raw(framework, native)
    if native.ours:
        library = trained(OPTIMIZERS.get(native.ours), framework, native, {**native.arguments, **native.only_ours})
        assert distance(library, expected) <= TOLERANCE
        kind = getattr(importlib.import_module(f"deep500.frameworks.{framework}.optimizers"), name)
        assert distance(trained(kind, framework, native, native.arguments), expected) <= TOLERANCE


@pytest.mark.parametrize(("framework", "name"), NAMES)
def test_it_learns_and_goes_on_from_a_snapshot(framework: str, name: str) -> None:
    executor, other = make_executor(framework, "float32"), make_executor(framework, "float32")
    kind = getattr(importlib.import_module(f"deep500.frameworks.{framework}.optimizers"), name)
    optimizer, twin = kind(executor, "loss", 0.01), kind(other, "loss", 0.01)
    batch = batches(1, "float32", size=32)[0]
    losses = [float(executor.to_numpy(optimizer.step(batch)["loss"])) for _ in range(15)]
    assert losses[-1] < losses[0]
    twin.step(batch)
    twin.restore(optimizer.state())
    for parameter, value in parameters_of(executor).items():
        other.network.feed_tensor(parameter, value)
    for _ in range(3):
        optimizer.step(batch)
        twin.step(batch)
    for parameter, value in parameters_of(executor).items():
        np.testing.assert_array_equal(parameters_of(other)[parameter], value, err_msg=parameter)
    assert optimizer.step_count == twin.step_count == 18


@pytest.mark.parametrize("framework", NATIVE)
def test_sam_takes_a_native_base(framework: str) -> None:
    """SAM over the framework's momentum is SAM over ours."""
    results = []
    for base in (OPTIMIZERS.get("momentum"), None):
        executor = make_executor(framework, "float32")
        base = base or importlib.import_module(f"deep500.frameworks.{framework}.optimizers").MomentumOptimizer
        optimizer = OPTIMIZERS.get("sam")(executor, "loss", 0.02, base=base)
        for inputs in batches(10, "float32"):
            optimizer.step(inputs)
        assert optimizer.step_count == 10
        results.append(parameters_of(executor))
    assert distance(*results) <= TOLERANCE


def native_class(framework: str, name: str) -> Any:
    """Return the class of a framework's own optimizer, or skip."""
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    return getattr(importlib.import_module(f"deep500.frameworks.{framework}.optimizers"), name)


def arguments_of(kind: Any) -> dict[str, Any]:
    """Return the arguments of an optimizer besides executor, loss and options, with their defaults."""
    parameters = list(inspect.signature(kind).parameters.values())[2:]
    return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}


@pytest.mark.parametrize("name", sorted(set(TORCH) & set(KERAS)))
def test_arguments_are_the_same_in_both(name: str) -> None:
    pytorch, tensorflow = native_class("pytorch", name), native_class("tensorflow", name)
    assert arguments_of(pytorch) == arguments_of(tensorflow)
    assert pytorch.__name__ == tensorflow.__name__ == name


@pytest.mark.parametrize(("framework", "name"), NAMES)
def test_arguments_and_defaults_are_those_of_the_library(framework: str, name: str) -> None:
    (library,) = (kind for kind in map(OPTIMIZERS.get, OPTIMIZERS.names()) if kind.__name__ == name)
    known = arguments_of(library)
    assert arguments_of(native_class(framework, name)).items() <= known.items()


@pytest.mark.parametrize(("framework", "name"), NAMES)
def test_bad_hyperparameters_of_native_optimizers_are_refused(framework: str, name: str) -> None:
    kind, executor = native_class(framework, name), make_executor(framework, "float32")
    for argument, default in arguments_of(kind).items():
        for value in REFUSED[type(default)]:
            with pytest.raises(TrainingError, match=f"{argument} was given as"):
                kind(executor, **{argument: value})
    for name_of_option, value in (("clip_norm", -1.0), ("accumulation_steps", 0), ("learning_rat", 0.1)):
        with pytest.raises(TrainingError, match=name_of_option):
            kind(executor, **{name_of_option: value})
