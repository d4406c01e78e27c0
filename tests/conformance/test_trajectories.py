"""Trainings under every framework stay together, and a fault that is planted in one is found at its step and tensor."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import onnx_ir as ir
import pytest

from deep500.datasets.loading import load_dataset
from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.training.catalogue import OPTIMIZERS
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.validation.trajectories import compare_trajectories
from deep500.training.validation.trajectory_report import TrajectoryReport

RATES = {"adam": 0.003, "gradient_descent": 0.1, "lion": 0.001, "momentum": 0.05}


def adapter(framework: str) -> Any:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    return importlib.import_module(f"deep500.frameworks.{framework}")


def classifier(model: str = "mlp", **options: Any) -> Network:
    network = create_model(model, **{"shape": (1, 8, 8), **options})
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def compare(framework: str, network: Network, optimizer: Any, steps: int, **options: Any) -> TrajectoryReport:
    frameworks = options.pop("frameworks", [adapter("reference"), adapter(framework)])
    return compare_trajectories(network, load_dataset("digits")[0], frameworks, steps, optimizer=optimizer, **options)


OTHERS = [name for name in FRAMEWORKS.names() if name != "reference"]


@pytest.mark.parametrize("optimizer", sorted(RATES))
@pytest.mark.parametrize("framework", OTHERS)
def test_trainings_stay_together(framework: str, optimizer: str) -> None:
    maker = functools.partial(OPTIMIZERS.get(optimizer), learning_rate=RATES[optimizer])
    report = compare(framework, classifier(hidden=(16,)), maker, 8)

    assert report.passed, str(report)
    assert max(report.of(framework).distances) < 1e-5


@pytest.mark.parametrize("framework", OTHERS)
def test_network_with_convolutions_and_normalisation_stays_together(framework: str) -> None:
    report = compare(
        framework, classifier("resnet", depth=8), functools.partial(AdamOptimizer, learning_rate=0.003), 4, batch_size=8
    )

    assert report.passed, str(report)


@pytest.mark.parametrize("framework", OTHERS)
def test_swapped_betas_are_found_at_the_second_step(framework: str) -> None:
    """Adam's first step does not depend on its betas: both moments are corrected to the gradient and its square."""
    right = functools.partial(AdamOptimizer, learning_rate=0.003)
    wrong = functools.partial(AdamOptimizer, learning_rate=0.003, beta1=0.999, beta2=0.9)
    report = compare(framework, classifier(hidden=(16,)), [right, wrong], 4)
    parting = report.of(framework).parting

    assert parting is not None
    assert parting.step == 2
    assert {tensor.name for tensor in parting.tensors} == set(report.of(framework).tensor_distances)
    assert parting.node is None
    assert "it is the update by AdamOptimizer that differs" in parting.cause


@pytest.mark.parametrize("tensor", ["layers.1.weight", "layers.0.bias"])
def test_swapped_betas_of_one_tensor_are_found_there(tensor: str) -> None:
    right = functools.partial(AdamOptimizer, learning_rate=0.003)
    swapped = [(tensor, {"beta1": 0.999, "beta2": 0.9})]
    wrong = functools.partial(AdamOptimizer, learning_rate=0.003, parameter_groups=swapped)
    report = compare("pytorch", classifier(hidden=(16,)), [right, wrong], 4)
    parting = report.of("pytorch").parting

    assert parting is not None
    assert parting.step == 2
    assert parting.tensor == tensor
    assert len(parting.tensors) == 1


def test_wrong_node_is_named() -> None:
    pytorch = adapter("pytorch")

    def leaking(network: Network) -> Any:
        changed = network.detached()
        for node in changed.model.graph:
            if node.op_type == "LeakyRelu":
                node.attributes["alpha"] = ir.AttrFloat32("alpha", 0.02)
        changed = {"train": Network.train, "eval": Network.eval}.get(network.mode, Network.as_declared)(changed)
        return pytorch.from_model(changed)

    network = classifier(hidden=(16,))
    for node in network.model.graph:
        if node.op_type == "Relu":
            node.op_type = "LeakyRelu"
            node.attributes["alpha"] = ir.AttrFloat32("alpha", 0.01)
            name = node.name
    report = compare("pytorch", network, "gradient_descent", 3, frameworks=[adapter("reference"), leaking])
    parting = report.of("pytorch").parting

    assert parting is not None
    assert (parting.step, parting.node) == (1, name)
    assert "(LeakyRelu) is the first to differ" in parting.cause
