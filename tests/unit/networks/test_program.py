from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from deep500.core.errors import InvalidInputError, UnknownNameError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from tests.unit.networks.support import batch_normalization, make_model, two_outputs, value


def two_losses() -> Network:
    network = create_model("mlp", shape=(6,), hidden=(5,), classes=3)
    network.append_loss("SoftmaxCrossEntropyLoss")
    network.append_loss("MeanSquaredError", label="target", name="distance")
    return network


def operators(network: Network, *fed: str) -> list[str]:
    return [node.op_type for node in network.program(frozenset(fed)).nodes]


def test_everything_is_fed() -> None:
    program = two_losses().program(frozenset({"target", "label", "input"}))

    assert program.inputs == ("input", "label", "target")
    assert program.input_types == (
        TensorDescriptor("float32", ("batch", 6)),
        TensorDescriptor("int64", ("batch",)),
        TensorDescriptor("float32", ("batch", 3)),
    )
    assert program.outputs == ("output", "loss", "distance")
    assert program.losses == ("loss", "distance")
    assert program.parameters == ("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias")
    assert program.states == program.constants == ()
    assert len(program.nodes) == 8


@pytest.mark.parametrize(
    ("fed", "outputs", "last"),
    [
        ({"input"}, ("output",), "Gemm"),
        ({"input", "label"}, ("output", "loss"), "SoftmaxCrossEntropyLoss"),
        ({"input", "target"}, ("output", "distance"), "ReduceMean"),
    ],
)
def test_losses_whose_labels_are_not_fed_are_left_out(fed: set[str], outputs: tuple[str, ...], last: str) -> None:
    program = two_losses().program(frozenset(fed))

    assert program.outputs == outputs
    assert program.losses == outputs[1:]
    assert program.nodes[-1].op_type == last


@pytest.mark.parametrize("fed", [set(), {"label"}, {"label", "target"}])
def test_missing_input_is_named(fed: set[str]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        two_losses().program(frozenset(fed))

    names = ", ".join(map(repr, sorted(fed))) or "nothing"
    assert str(caught.value) == (
        f"Input 'input' was not fed, and output 'output' needs it. Fed: {names}; "
        f"the network's inputs: 'input', 'label', 'target'."
    )


def test_unknown_input_has_a_near_miss() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no input named 'lable'. Did you mean 'label'\? Its inputs: input, label"
    ):
        two_losses().program(frozenset({"input", "lable"}))


def test_stored_tensors_are_no_inputs() -> None:
    with pytest.raises(UnknownNameError, match=r"no input named 'layers\.0\.bias'"):
        two_losses().program(frozenset({"input", "layers.0.bias"}))


def test_nodes_that_no_output_needs_are_left_out() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Mul", ["x", "w"], ["unused"]),
    ]
    network = Network.load(make_model(nodes, [value("x", 2)], [value("y", 2)], {"w": np.ones(2, np.float32)}))

    program = network.program(frozenset({"x"}))

    assert [node.op_type for node in program.nodes] == ["Relu"]
    assert program.parameters == ()
    assert list(network.parameters) == ["w"]


def test_a_loss_on_one_of_two_outputs() -> None:
    network = two_outputs()
    network.append_loss("SoftmaxCrossEntropyLoss", prediction="b")

    assert operators(network, "x") == ["Relu", "Neg"]
    assert operators(network, "x", "label") == ["Relu", "Neg", "SoftmaxCrossEntropyLoss"]


def test_programs_are_kept_until_the_network_changes() -> None:
    network = create_model("mlp", shape=(6,), hidden=())
    before = network.program(frozenset({"input"}))

    assert network.program(frozenset({"input"})) is before
    network.append_loss("SoftmaxCrossEntropyLoss")
    assert network.program(frozenset({"input", "label"})).losses == ("loss",)


def test_output_may_be_an_input_or_stored() -> None:
    proto = make_model(
        [helper.make_node("Relu", ["x"], ["y"])],
        [value("x", 2)],
        [value("x", 2), value("y", 2), value("w", 2)],
        {"w": np.ones(2, np.float32)},
    )
    program = Network.load(proto).program(frozenset({"x"}))

    assert program.outputs == ("x", "y", "w")
    assert program.parameters == ("w",)


def test_graph_of_a_node_is_read_with_it() -> None:
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "branch", [], [value("z", 2)])
    node = helper.make_node("If", ["condition"], ["y"], name="choice", then_branch=branch, else_branch=branch)
    condition = value("condition", element=TensorProto.BOOL)
    network = Network.load(make_model([node], [value("x", 2), condition], [value("y", 2)]))

    program = network.program(frozenset({"x", "condition"}))
    (read,) = program.nodes

    assert program.inputs == ("x", "condition")
    assert read.captured == ("x",)
    assert sorted(read.graphs) == ["else_branch", "then_branch"]
    then = read.graphs["then_branch"]
    assert (then.inputs, then.outputs, then.captured) == ((), ("z",), ("x",))
    assert [inner.op_type for inner in then.nodes] == ["Identity"]


@pytest.mark.parametrize("opset", [15, 23, 28])
def test_nodes_carry_the_version_of_their_domain(opset: int) -> None:
    (node,) = Network.load(batch_normalization(opset=opset)).program(frozenset({"x"})).nodes

    assert node.version == max(opset, 23)
    assert node.label == f"node 'norm' (ai.onnx::BatchNormalization, version {node.version})"
