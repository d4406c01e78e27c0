"""Operators that ONNX defines by others are replaced by their definitions, which compute the same."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from onnx.reference import ReferenceEvaluator

from deep500.networks import Network, create_model

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
X = np.random.default_rng(0).standard_normal((4, 3, 5)).astype(np.float32)


def one_node(operator: str, inputs: int = 1, outputs: int = 1, opset: int = 23, **attributes: object) -> Network:
    names = [f"x{i}" for i in range(inputs)]
    values = [oh.make_tensor_value_info(name, FLOAT, ["batch", 3, 5]) for name in names]
    results = [f"y{i}" for i in range(outputs)]
    node = oh.make_node(operator, names, results, name="node", **attributes)
    graph = oh.make_graph([node], "graph", values, [oh.make_tensor_value_info(y, FLOAT, [None] * 3) for y in results])
    return Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=11))


@pytest.mark.parametrize("opset", [23, 26])
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("Mish", {}),
        ("Gelu", {"approximate": "tanh"}),
        ("Celu", {"alpha": 0.5}),
        ("Celu", {}),
        ("Softmax", {"axis": 1}),
        ("MeanVarianceNormalization", {"axes": [0, 2]}),
        ("HardSwish", {}),
        ("ThresholdedRelu", {"alpha": 0.3}),
    ],
)
def test_definition_computes_the_same(operator: str, attributes: dict[str, object], opset: int) -> None:
    made = one_node(operator, opset=opset, **attributes)
    expanded = made.expanded(lambda domain, name, version: name != operator)

    assert operator not in [node.op_type for node in expanded.model.graph]
    assert operator in [node.op_type for node in made.model.graph]
    (expected,) = ReferenceEvaluator(made.to_proto()).run(None, {"x0": X})
    (found,) = ReferenceEvaluator(expanded.to_proto()).run(None, {"x0": X})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_definition_of_an_older_opset_is_brought_to_the_models() -> None:
    network = create_model("mlp", shape=(3,), hidden=(), classes=2)
    network.append_loss("SoftmaxCrossEntropyLoss")
    kept = ("LogSoftmax", "Softmax")
    expanded = network.expanded(lambda domain, name, version: name in kept)
    names = {node.op_type for node in expanded.model.graph}

    assert not names & {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}
    assert expanded.get_params() == network.get_params()
    assert list(expanded.losses) == ["loss"]
    feeds = {"input": X[:, :, 0], "label": np.array([0, 1, 1, 0])}
    expected = ReferenceEvaluator(network.to_proto()).run(["loss"], feeds)
    found = ReferenceEvaluator(expanded.to_proto()).run(["loss"], feeds)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_parameters_states_and_values_are_kept() -> None:
    scale = np.ones(3, np.float32)
    stored = [onh.from_array(scale, name) for name in ("scale", "bias", "mean", "var")]
    nodes = [
        oh.make_node("BatchNormalization", ["x", "scale", "bias", "mean", "var"], ["z"]),
        oh.make_node("Mish", ["z"], ["y"]),
    ]
    values = [oh.make_tensor_value_info(name, FLOAT, [4, 3, 5]) for name in "xy"]
    graph = oh.make_graph(nodes, "graph", values[:1], values[1:], stored)
    made = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11)).train()
    made.feed_tensor("mean", scale * 7)
    expanded = made.expanded(lambda domain, name, version: name != "Mish")

    assert list(expanded.parameters) == ["scale", "bias"]
    assert list(expanded.states) == ["mean", "var"]
    assert expanded.mode == "train"
    np.testing.assert_array_equal(expanded.fetch_tensors(["mean"])[0], scale * 7)


def test_nothing_to_expand_is_the_network_itself() -> None:
    made = one_node("Relu")

    assert made.expanded(lambda *_: True) is made
    assert one_node("Add", inputs=2).expanded(lambda *_: False).model.graph[0].op_type == "Add"
