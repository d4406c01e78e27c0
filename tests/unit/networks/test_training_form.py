from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode
from deep500.networks.training_form import Mode, node_in_mode
from tests.unit.networks.support import batch_normalization, make_model, value

CHANNELS = TensorDescriptor("float32", (3,))
IMAGES = TensorDescriptor("float32", ("N", 3, 4, 4))


def norm(*outputs: str, **attributes: float) -> OperatorNode:
    return OperatorNode(
        "norm",
        "",
        "BatchNormalization",
        15,
        attributes,
        ("x", "scale", "bias", "mean", "var"),
        outputs or ("y",),
        (IMAGES, CHANNELS, CHANNELS, CHANNELS, CHANNELS),
        (IMAGES, CHANNELS, CHANNELS)[: len(outputs) or 1],
    )


@pytest.mark.parametrize("exported", [norm(epsilon=1e-3), norm("y", "m", "v", epsilon=1e-3, training_mode=1)])
def test_evaluation_form(exported: OperatorNode) -> None:
    node, updates = node_in_mode(exported, Mode.EVAL, frozenset({"y"}))

    assert node.outputs == ("y",)
    assert node.output_types == (IMAGES,)
    assert node.attributes == {"epsilon": 1e-3}
    assert node.inputs == exported.inputs
    assert updates == {}


def test_training_form_of_a_node_exported_for_inference() -> None:
    node, updates = node_in_mode(norm(momentum=0.8), Mode.TRAIN, frozenset({"y"}))

    assert node.outputs == ("y", "y.running_mean", "y.running_var")
    assert node.output_types == (IMAGES, CHANNELS, CHANNELS)
    assert node.attributes == {"momentum": 0.8, "training_mode": 1}
    assert updates == {"mean": "y.running_mean", "var": "y.running_var"}


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        (("y", "m", "v"), ("m", "v")),
        (("y", "m"), ("m", "y.running_var")),
        (("y", "", "v"), ("y.running_mean", "v")),
    ],
)
def test_training_form_of_a_node_exported_while_training(outputs: tuple[str, ...], names: tuple[str, str]) -> None:
    node, updates = node_in_mode(norm(*outputs, training_mode=1), Mode.TRAIN, frozenset({"y"}))

    assert node.outputs == ("y", *names)
    assert node.attributes == {"training_mode": 1}
    assert updates == dict(zip(("mean", "var"), names, strict=True))


def test_statistics_that_are_read_have_no_evaluation_form() -> None:
    exported = norm("y", "m", "v", training_mode=1)

    with pytest.raises(InvalidNetworkError, match=r"node 'norm' .* has no evaluation form"):
        node_in_mode(exported, Mode.EVAL, frozenset({"y", "m"}))
    assert node_in_mode(exported, Mode.TRAIN, frozenset({"y", "m"}))[0].outputs == ("y", "m", "v")


def test_other_nodes_have_one_form() -> None:
    relu = OperatorNode("relu", "", "Relu", 14, {}, ("x",), ("y",))
    foreign = OperatorNode("norm", "mine", "BatchNormalization", 1, {}, ("x",), ("y",))

    for node in (relu, foreign):
        for mode in Mode:
            assert node_in_mode(node, mode, frozenset({"y"})) == (node, {})


@pytest.mark.parametrize("outputs", [("y",), ("y", "m", "v")])
def test_network_states_its_mode(outputs: tuple[str, ...]) -> None:
    attributes = {"training_mode": 1} if len(outputs) == 3 else {}
    network = Network.load(batch_normalization(outputs=outputs, **attributes))

    evaluated = network.program(frozenset({"x"}))
    trained = network.train().program(frozenset({"x"}))

    assert (evaluated.mode, trained.mode) == (Mode.EVAL, Mode.TRAIN)
    assert evaluated.state_updates == {}
    assert evaluated.nodes[0].outputs == ("y",)
    assert list(trained.state_updates) == ["mean", "var"]
    assert trained.nodes[0].attributes["training_mode"] == 1
    assert evaluated.states == trained.states == ("mean", "var")
    assert network.eval().program(frozenset({"x"})) is evaluated


def test_statistics_that_are_fed_are_not_updated() -> None:
    stored = {"scale": np.ones(3, np.float32), "bias": np.zeros(3, np.float32)}
    node = helper.make_node("BatchNormalization", ["x", "scale", "bias", "mean", "var"], ["y"])
    inputs = [value("x", "N", 3, 4, 4), value("mean", 3), value("var", 3)]
    network = Network.load(make_model([node], inputs, [value("y", "N", 3, 4, 4)], stored)).train()

    program = network.program(frozenset({"x", "mean", "var"}))

    assert program.nodes[0].attributes["training_mode"] == 1
    assert program.state_updates == {}
