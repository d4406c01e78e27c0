from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from deep500.core.errors import InvalidInputError, InvalidNetworkError, UnknownNameError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.creation import create_model
from deep500.networks.flop_rules import flop_rules
from deep500.networks.flops import count_flops, network_flops, node_flops
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode
from tests.unit.networks.support import make_model, relu_model, value

# LeNet-5 on 28x28 with padding 2, by hand: a multiply-add is 2, a bias, a comparison and a maximum 1.
LENET = {
    "conv1": 28 * 28 * 6 * (2 * 25 + 1),
    "relu1": 28 * 28 * 6,
    "pool1": 14 * 14 * 6 * 4,
    "conv2": 14 * 14 * 16 * (2 * 6 * 25 + 1),
    "relu2": 14 * 14 * 16,
    "pool2": 7 * 7 * 16 * 4,
    "flatten": 0,
    "fc1": 120 * (2 * 784 + 1),
    "relu3": 120,
    "fc2": 84 * (2 * 120 + 1),
    "relu4": 84,
    "fc3": 10 * (2 * 84 + 1),
}
# Softmax five a score, a logarithm a row; negation and mean of the likelihood.
LENET_LOSS = 5 * 10 + 1 + 2


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_lenet_by_hand(batch_size: int) -> None:
    network = create_model("lenet")
    count = count_flops(network, batch_size)

    assert count.flops == tuple(batch_size * flops for flops in LENET.values())
    assert count.uncounted == {}
    assert count.batch_size == batch_size
    assert network.flops(batch_size) == count.total == batch_size * sum(LENET.values())
    network.append_loss("SoftmaxCrossEntropyLoss")
    assert network.flops(batch_size) == batch_size * (sum(LENET.values()) + LENET_LOSS)


@pytest.mark.parametrize("name", ["lenet", "mlp", "resnet", "simple_cnn"])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_loaded_and_fixed_networks_count_alike_in_every_mode(name: str, mode: str) -> None:
    network = create_model(name, shape=(1, 16, 16))
    fixed = create_model(name, 5, shape=(1, 16, 16))
    loaded = Network.load(network.to_proto())
    for each in (network, fixed, loaded):
        getattr(each, mode)()
        assert each.flops(5) == 5 * network.flops()
    assert fixed.flops() == fixed.flops(5)
    assert network.inputs["input"].shape == ("batch", 1, 16, 16)  # counting changes nothing


def test_resnet_44_takes_twice_the_multiply_adds_that_are_published() -> None:
    flops = create_model("resnet", depth=44, shape=(3, 32, 32)).flops()

    assert flops == pytest.approx(2 * 97e6, rel=0.02)


def single(
    op_type: str,
    inputs: Sequence[tuple[int, ...]],
    output: tuple[int, ...],
    dtype: str = "float32",
    domain: str = "",
    version: int = 23,
    **attributes: Any,
) -> OperatorNode:
    types = tuple(TensorDescriptor(dtype, shape) for shape in inputs)
    names = tuple(f"x{i}" for i in range(len(inputs)))
    return OperatorNode(
        "n", domain, op_type, version, attributes, names, ("y",), types, (TensorDescriptor(dtype, output),)
    )


@pytest.mark.parametrize(
    ("node", "flops"),
    [
        # 6 maps of 4 x 4 positions; each sums 2 of the 4 channels over 3 x 3 pixels.
        (single("Conv", [(1, 4, 8, 8), (6, 2, 3, 3)], (1, 6, 4, 4), group=2), 6 * 16 * 2 * 2 * 9),
        (single("Conv", [(1, 4, 8, 8), (6, 2, 3, 3), (6,)], (1, 6, 4, 4), group=2), 6 * 16 * (2 * 2 * 9 + 1)),
        (single("Conv", [(5, 4, 8), (4, 1, 3)], (5, 4, 6), group=4), 5 * 4 * 6 * 2 * 3),
        (single("ConvTranspose", [(1, 4, 3, 3), (4, 2, 2, 2), (2,)], (1, 2, 6, 6)), 2 * 36 * 8 + 72),
        (single("Gemm", [(3, 4), (4, 5)], (3, 5)), 2 * 60),
        (single("Gemm", [(4, 3), (5, 4), (5,)], (3, 5), transA=1, transB=1), 2 * 60 + 15),
        (single("Gemm", [(3, 4), (4, 5), (5,)], (3, 5), alpha=2.0, beta=0.5), 2 * 60 + 15 + 15 + 5),
        (single("MatMul", [(2, 3, 4), (4, 5)], (2, 3, 5)), 2 * 4 * 30),
        (single("MatMul", [(4,), (4,)], ()), 8),
        (single("MaxPool", [(1, 2, 6, 6)], (1, 2, 3, 3), kernel_shape=[2, 3]), 18 * 6),
        (single("AveragePool", [(1, 2, 6)], (1, 2, 3), kernel_shape=[2]), 6 * 2),
        (single("GlobalAveragePool", [(2, 3, 4, 4)], (2, 3, 1, 1)), 96),
        (single("BatchNormalization", [(2, 3, 4), (3,), (3,), (3,), (3,)], (2, 3, 4)), 48),
        (single("LayerNormalization", [(2, 4), (4,), (4,)], (2, 4)), 56),
        (single("Add", [(2, 1), (1, 3)], (2, 3)), 6),
        (single("Sum", [(2, 3), (3,), (1,)], (2, 3)), 12),
        (single("Mean", [(2, 3), (3,)], (2, 3)), 12),
        (single("Tanh", [()], ()), 1),
        (single("ReduceMean", [(2, 3, 4)], (2, 1, 4)), 24),
        (single("ReduceL2", [(2, 3)], (2,)), 14),
        (single("Softmax", [(2, 3)], (2, 3)), 30),
        (single("LogSoftmax", [(2, 3)], (2, 3)), 32),
        (single("LogSoftmax", [(2, 3, 4)], (2, 3, 4), axis=1), 5 * 24 + 8),
        (single("SoftmaxCrossEntropyLoss", [(2, 3), (2,)], (), reduction="none"), 30 + 2 + 2),
        (single("NegativeLogLikelihoodLoss", [(2, 3, 5), (2, 5), (3,)], ()), 40),
        (single("Transpose", [(2, 3)], (3, 2)), 0),
        (single("Dropout", [(2, 3)], (2, 3)), 0),
        (single("Add", [(0, 3), (3,)], (0, 3)), 0),
        (single("Softmax", [(0, 3)], (0, 3)), 0),
        (single("LogSoftmax", [(3, 0)], (3, 0)), 0),
        (single("Einsum", [(2, 3), (3, 4)], (2, 4), equation="ij, jk -> ik"), 2 * 24),
        (single("Einsum", [(5, 2, 3), (5, 3, 4)], (5, 2, 4), equation="...ij,...jk->...ik"), 2 * 5 * 24),
        (single("Einsum", [(2, 3)], (3, 2), equation="ij->ji"), 0),
        (single("Einsum", [(3,), (4,)], (3, 4), equation="i,j"), 12),
        (single("Einsum", [(3,), (3,)], (), equation="i,i"), 6),
        (single("Det", [(5, 3, 3)], (5,)), 5 * 18),
        (single("RNN", [(7, 2, 3), (1, 4, 3), (1, 4, 4)], (7, 1, 2, 4)), 7 * 2 * 4 * (6 + 8 + 2)),
        (single("GRU", [(7, 2, 3), (2, 12, 3), (2, 12, 4), (2, 24)], (7, 2, 2, 4)), 112 * (3 * (6 + 8 + 2 + 2) + 5)),
        (single("QuantizeLinear", [(6,), ()], (6,)), 12),
        (single("DequantizeLinear", [(6,), ()], (6,)), 6),
        (single("DFT", [(2, 8, 1)], (2, 8, 2)), 2 * 5 * 8 * 3),
        (single("DFT", [(2, 8, 2)], (2, 8, 2), inverse=1), 2 * (5 * 8 * 3 + 16)),
        (single("STFT", [(2, 64, 1), (), (16,)], (2, 7, 9, 2)), 14 * (5 * 16 * 4 + 16)),
        (single("HannWindow", [()], (10,)), 40),
        (single("Resize", [(1, 2, 4, 4)], (1, 2, 8, 8), mode="linear"), 2 * 128 * 4),
        (single("Resize", [(1, 2, 4, 4)], (1, 2, 8, 8)), 0),
        (single("GridSample", [(1, 2, 4, 4), (1, 3, 3, 2)], (1, 2, 3, 3)), 3 * 18 + 2 * 18 * 4),
        (single("DeformConv", [(1, 2, 4, 4), (3, 2, 3, 3), (1, 18, 2, 2)], (1, 3, 2, 2)), 12 * 36 + 2 * 4 * 9 * 8),
        (single("LRN", [(1, 4, 2, 2)], (1, 4, 2, 2), size=3), 16 * 8),
        (single("LpPool", [(1, 1, 4)], (1, 1, 2), kernel_shape=[2]), 2 * 5),
        (single("TopK", [(2, 8), (1,)], (2, 3)), 48),
        (single("Unique", [(4, 4)], (5,)), 64),
        (single("ScatterElements", [(4,), (2,), (2,)], (4,)), 0),
        (single("ScatterElements", [(4,), (2,), (2,)], (4,), reduction="add"), 2),
        (single("NonMaxSuppression", [(1, 4, 4), (1, 2, 4)], (3, 3)), 12 * 2 * 6),
        (single("SwiGLU", [(6,), (6,)], (6,)), 24),
        (single("Scaler", [(2, 3)], (2, 3), domain="ai.onnx.ml", version=3), 12),
        (single("LinearRegressor", [(2, 3)], (2, 1), domain="ai.onnx.ml", version=3, coefficients=[1.0] * 3), 12),
        (
            single("Adam", [(), (), (5,), (5,), (5,), (5,)], (5,), domain="ai.onnx.preview.training", version=1),
            14 * 5,
        ),
        # Integers take no floating-point operations, whatever the operator.
        (single("Add", [(2,), (2,)], (2,), dtype="int64"), 0),
        (single("Mine", [(2,)], (2,), dtype="bool", domain="mine", version=1), 0),
        (single("Add", [(2,), (2,)], (2,), dtype="bfloat16"), 2),
        # No rule is not nothing.
        (single("If", [(2,)], (2,)), None),
        (single("Add", [(2,), (2,)], (2,), domain="mine", version=1), None),
    ],
    ids=lambda x: x.op_type if isinstance(x, OperatorNode) else str(x),
)
def test_rules(node: OperatorNode, flops: int | None) -> None:
    assert node_flops(node) == flops


def branch(name: str) -> onnx.GraphProto:
    """Return a branch that doubles a tensor around it."""
    return helper.make_graph([helper.make_node("Add", [name, name], ["d"])], "branch", [], [value("d", "N")])


def test_operator_without_a_rule_is_named(caplog: pytest.LogCaptureFixture) -> None:
    nodes = [
        helper.make_node("Mine", ["x"], ["a"], domain="mine"),
        helper.make_node("Mine", ["a"], ["b"], domain="mine"),
        helper.make_node("If", ["on"], ["c"], then_branch=branch("b"), else_branch=branch("x")),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    typed = [value("a", "N"), value("b", "N"), value("c", "N")]
    on = {"on": np.array(True)}
    proto = make_model(nodes, [value("x", "N")], [value("y", "N")], on, domains=["mine"])
    proto.graph.value_info.extend(typed)
    network = Network.load(proto)

    with caplog.at_level(logging.WARNING):
        assert network_flops(network, 3) == 3
    assert count_flops(network).uncounted == {"mine::Mine": 2, "ai.onnx::If": 1}
    assert "lower bound: there is no rule for mine::Mine, ai.onnx::If" in caplog.text


def test_author_of_an_operator_registers_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flop_rules, "_table", dict(flop_rules._table))
    flop_rules.register("Cube", since=1, domain="mine")(lambda node: 2 * 8)

    assert node_flops(single("Cube", [(8,)], (8,), domain="mine", version=1)) == 16


def test_sizes_that_follow_from_the_batch_are_inferred() -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["r"]),
        helper.make_node("Concat", ["r", "r"], ["c"], axis=0),
        helper.make_node("MatMul", ["c", "w"], ["y"]),
    ]
    stored: dict[str, Any] = {"flat": np.array([-1, 6]), "w": np.ones((6, 5), np.float32)}
    network = Network.load(make_model(nodes, [value("x", "N", 2, 6)], [value("y", "M", 5)], stored))

    assert network.flops(3) == 2 * 6 * 5 * (3 * 2 * 2)


@pytest.mark.parametrize("batch", [("N", "N"), (None, None), ("N", None)])
def test_batch_of_several_inputs(batch: tuple[Any, Any]) -> None:
    node = helper.make_node("Add", ["a", "b"], ["y"])
    network = Network.load(make_model([node], [value("a", batch[0], 2), value("b", batch[1], 2)], [value("y", "M", 2)]))

    assert network.flops(4) == 8


def test_other_symbolic_sizes_are_named() -> None:
    stored = {"w": np.ones((6, 4, 3, 3), np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    network = Network.load(
        make_model(nodes, [value("x", "N", 4, "height", 8)], [value("y", "N", 6, "height", 8)], stored)
    )
    fixed = Network.load(make_model(nodes, [value("x", "N", 4, 8, 8)], [value("y", "N", 6, 8, 8)], stored))

    assert fixed.flops() == 6 * 64 * 2 * 36 + 6 * 64
    with pytest.raises(InvalidNetworkError, match=r"node '\w+' .* depend on .*declare the other sizes"):
        network.flops()
    partial = count_flops(network, partial=True)
    assert partial.flops == (None, None)
    assert partial.uncounted == {}
    assert "depend on the symbolic size" in partial.obstacles[0]
    assert count_flops(network, sizes={"height": 8}).total == fixed.flops()
    assert count_flops(network, sizes={"height": 8, "N": 3}).total == 3 * fixed.flops()
    with pytest.raises(InvalidInputError, match="given as 2, and 'N', the batch, as 3"):
        count_flops(network, 2, sizes={"height": 8, "N": 3})
    with pytest.raises(UnknownNameError, match="No input has a size named 'heigth'"):
        count_flops(network, sizes={"heigth": 8})
    assert Network.load(relu_model("N", 4)).flops(2) == 8
    with pytest.raises(InvalidNetworkError, match="the symbolic size 'width' of its output 'y'"):
        Network.load(relu_model("N", "width")).flops()


def test_unknown_size_without_a_name_is_refused() -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT)]
    proto = make_model([*nodes, helper.make_node("Relu", ["f"], ["y"])], [value("x", "N")], [value("y", 1, None)])

    with pytest.raises(InvalidNetworkError, match="node 'y'"):
        Network.load(proto).flops()


@pytest.mark.parametrize("batch_size", [0, -1, 1.0, True, None, "4"])
def test_batch_size_is_a_number_from_1(batch_size: Any) -> None:
    with pytest.raises(InvalidInputError, match="batch_size was given as"):
        create_model("mlp", shape=(2,)).flops(batch_size)


def test_batch_size_other_than_the_fixed_one_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="given as 3; network 'mlp' has the fixed batch size 5"):
        create_model("mlp", 5, shape=(2,)).flops(3)


def test_batch_that_the_network_contradicts_is_reported() -> None:
    nodes = [helper.make_node("Reshape", ["x", "fixed"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    proto = make_model(nodes, [value("x", "N", 6)], [value("y", 1, 6)], {"fixed": np.array([1, 6])})

    assert Network.load(proto).flops(1) == 6


def test_scalar_inputs_have_no_batch() -> None:
    assert Network.load(relu_model()).flops() == 1


#: How often their graphs run is known only in a run.
CONTROL_FLOW = {("", "If"), ("", "Loop"), ("", "Scan"), ("", "SequenceMap")}


def test_every_operator_that_numpy_runs_has_a_rule() -> None:
    lowered = {(domain, name) for domain, name, _ in lowerings.operators()}
    counted = {(domain, name) for domain, name, _ in flop_rules.operators()}

    assert len(lowered) > 30
    assert not lowered - counted - CONTROL_FLOW
