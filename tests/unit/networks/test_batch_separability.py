from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from deep500.core.errors import InvalidNetworkError
from deep500.networks.batch_separability import Reduction, analyse_batching
from deep500.networks.creation import MODELS, create_model
from deep500.networks.network import Network
from tests.unit.networks.support import make_model, value

STORED = {
    "w": np.ones((4, 4), np.float32),
    "row": np.ones((1, 4), np.float32),
    "rows": np.ones((3, 4), np.float32),
    "one": np.array([1]),
    "zero": np.array([0]),
    "flat": np.array([-1, 4]),
    "same": np.array([0, 2, 2]),
    "pairs": np.array([-1, 2]),
    "pads": np.array([0, 1, 0, 0]),
    "batch_pads": np.array([1, 0, 0, 0]),
}

SEPARABLE = [
    ("Relu", ["x"], {}),
    ("Add", ["x", "row"], {}),
    ("MatMul", ["x", "w"], {}),
    ("Gemm", ["x", "w", "row"], {}),
    ("Softmax", ["x"], {}),
    ("Softmax", ["x"], {"axis": 1}),
    ("Transpose", ["x"], {"perm": [0, 1]}),
    ("ReduceSum", ["x", "one"], {}),
    ("Unsqueeze", ["x", "one"], {}),
    ("Reshape", ["x", "flat"], {}),
    ("Reshape", ["x", "same"], {}),
    ("Concat", ["x", "x"], {"axis": 1}),
    ("Pad", ["x", "pads"], {}),
    ("LayerNormalization", ["x", "w"], {}),
    ("Gather", ["x", "one"], {"axis": 1}),
]

COUPLED = [
    ("Add", ["x", "rows"], {}),
    ("MatMul", ["w", "x"], {}),
    ("Gemm", ["x", "w"], {"transA": 1}),
    ("Gemm", ["x", "w", "rows"], {}),
    ("Softmax", ["x"], {"axis": 0}),
    ("Softmax", ["x"], {"axis": -2}),
    ("Transpose", ["x"], {}),
    ("Unsqueeze", ["x", "zero"], {}),
    ("Reshape", ["x", "pairs"], {}),
    ("Concat", ["x", "x"], {"axis": 0}),
    ("Pad", ["x", "batch_pads"], {}),
    ("CumSum", ["x", "zero"], {}),
    ("Gather", ["x", "one"], {"axis": 0}),
    ("Shape", ["x"], {}),
    ("ReduceMax", ["x", "zero"], {}),
]


def network(nodes: Sequence[Any], outputs: Sequence[str] = ("y",), stored: dict[str, Any] | None = None) -> Network:
    dummy = helper.make_node("Identity", ["x"], ["copy"])
    inputs = [value("x", "N", 4), value("t", "N", element=TensorProto.INT64)]
    made = Network.load(make_model([*nodes, dummy], inputs, [value("copy", "N", 4)], {**STORED, **(stored or {})}))
    graph = made.model.graph  # outputs of which the checker would have to be told the shape
    graph.outputs.extend(v for node in graph for v in node.outputs if v.name in outputs)
    return made


def analysed(made: Network) -> Any:
    return analyse_batching(made.program(frozenset(made.inputs)))


@pytest.mark.parametrize(("op", "inputs", "attributes"), SEPARABLE)
def test_separable_operator_carries_the_batch(op, inputs, attributes) -> None:
    assert "y" in analysed(network([helper.make_node(op, inputs, ["y"], **attributes)])).batched


@pytest.mark.parametrize(("op", "inputs", "attributes"), COUPLED)
def test_coupling_operator_is_refused_by_name(op, inputs, attributes) -> None:
    with pytest.raises(InvalidNetworkError, match=rf"node 'n'.*{op}.*cannot run in parts"):
        analysed(network([helper.make_node(op, inputs, ["y"], name="n", **attributes)]))


def test_losses_sum_up_the_batch() -> None:
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], keepdims=0),
        helper.make_node("SoftmaxCrossEntropyLoss", ["x", "t"], ["c"]),
        helper.make_node("SoftmaxCrossEntropyLoss", ["x", "t"], ["s"], reduction="sum"),
        helper.make_node("SoftmaxCrossEntropyLoss", ["x", "t", "weights"], ["i"], ignore_index=1),
        helper.make_node("Add", ["m", "c"], ["total"]),
        helper.make_node("Neg", ["s"], ["negative"]),
    ]
    stored = {"weights": np.array([1, 2, 3, 4], np.float32)}

    reduced = analysed(network(nodes, ["total", "negative", "i"], stored)).reduced

    assert {name: r.kind for name, r in reduced.items()} == {
        **dict.fromkeys(("m", "c", "total", "i"), Reduction.MEAN),
        **dict.fromkeys(("s", "negative"), Reduction.SUM),
    }
    assert reduced["i"].weight(np.array([0, 1, 3, 3]), 4) == 1 + 4 + 4
    assert reduced["c"].weight(None, 4) == 4


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        ([("ReduceMean", ["x"], "m"), ("Exp", ["m"], "y")], "do not add up"),
        ([("ReduceMean", ["x"], "m"), ("Mul", ["m", "m"], "y")], "do not add up"),
        ([("ReduceMean", ["x"], "m"), ("ReduceSum", ["x"], "s"), ("Add", ["m", "s"], "y")], "do not add up"),
        ([("ReduceSum", ["x"], "s"), ("Add", ["s", "row"], "y")], "do not add up"),
        ([("ReduceMean", ["x"], "m"), ("Sub", ["x", "m"], "y")], "do not add up"),
    ],
)
def test_what_is_not_linear_in_a_loss_is_refused(nodes, match) -> None:
    made = [helper.make_node(op, inputs, [output], name=output) for op, inputs, output in nodes]
    for node in made:
        if node.op_type.startswith("Reduce"):
            node.attribute.append(helper.make_attribute("keepdims", 0))
    with pytest.raises(InvalidNetworkError, match=match):
        analysed(network(made))


def test_labels_that_are_computed_cannot_be_counted() -> None:
    nodes = [
        helper.make_node("Abs", ["t"], ["a"]),
        helper.make_node("SoftmaxCrossEntropyLoss", ["x", "a"], ["y"], name="n", ignore_index=1),
    ]
    with pytest.raises(InvalidNetworkError, match="labels that are fed"):
        analysed(network(nodes))


def test_fixed_batch_is_refused() -> None:
    with pytest.raises(InvalidNetworkError, match="must have a name"):
        analysed(create_model("mlp", 4))


@pytest.mark.parametrize("model", ["lenet", "mlp", "resnet", "simple_cnn"])
def test_models_for_images_are_separable_in_evaluation(model: str) -> None:
    assert model in MODELS
    made = create_model(model)
    made.append_loss("SoftmaxCrossEntropyLoss")

    found = analysed(made)

    assert "output" in found.batched
    assert found.reduced["loss"].kind is Reduction.MEAN
