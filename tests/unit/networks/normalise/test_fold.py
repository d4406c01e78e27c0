"""Constants are computed once; what is trained, drawn or looked at by nobody is left alone or dropped."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest

from deep500.frameworks import FRAMEWORKS
from deep500.networks import Network

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def network(nodes: list[onnx.NodeProto], shape: list[int | str], *, rank: int = 1, **stored: np.ndarray) -> Network:
    graph = oh.make_graph(
        nodes,
        "graph",
        [oh.make_tensor_value_info("x", FLOAT, shape)],
        [oh.make_tensor_value_info("y", FLOAT, [None] * rank)],
        [onh.from_array(value, name) for name, value in stored.items()],
    )
    return Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))


def operators(found: Network) -> list[str]:
    return [node.op_type for node in found.model.graph]


RESHAPED = [
    oh.make_node("Shape", ["x"], ["shape"]),
    oh.make_node("Gather", ["shape", "first"], ["batch"]),
    oh.make_node("Concat", ["batch", "rest"], ["sizes"], axis=0),
    oh.make_node("Reshape", ["x", "sizes"], ["y"]),
]


def test_arithmetic_of_known_sizes_disappears() -> None:
    made = network(RESHAPED, [2, 6], rank=3, first=np.array([0]), rest=np.array([3, 2]))
    folded = made.folded()

    assert operators(folded) == ["Reshape"]
    assert operators(made) == ["Shape", "Gather", "Concat", "Reshape"]
    (sizes,) = folded.constants
    np.testing.assert_array_equal(folded.fetch_tensors([sizes])[0], [2, 3, 2])


def test_sizes_that_are_not_known_stay() -> None:
    folded = network(RESHAPED, ["batch", 6], rank=3, first=np.array([0]), rest=np.array([3, 2])).folded()
    x = np.arange(12, dtype=np.float32).reshape(2, 6)

    assert "Shape" in operators(folded)
    y = FRAMEWORKS.get("reference").from_model(folded).inference({"x": x})["y"]
    np.testing.assert_array_equal(y, x.reshape(2, 3, 2))


def test_parameters_are_no_constants() -> None:
    nodes = [oh.make_node("Mul", ["w", "w"], ["square"]), oh.make_node("Mul", ["x", "square"], ["y"])]
    made = network(nodes, [2], w=np.array([3.0, 4.0], np.float32))
    made.feed_tensor("w", np.array([1.0, 2.0], np.float32))
    folded = made.folded()

    assert operators(folded) == ["Mul", "Mul"]
    assert folded.get_params() == ["w"]
    np.testing.assert_array_equal(folded.fetch_tensors(["w"])[0], [1, 2])


def test_parameters_that_nobody_reads_stay_in_their_order() -> None:
    nodes = [
        oh.make_node("Shape", ["x"], ["shape"]),
        oh.make_node("Expand", ["b", "shape"], ["wide"]),
        oh.make_node("Add", ["x", "wide"], ["y"]),
    ]
    values = {name: np.ones(1, np.float32) for name in ("c", "b", "a")}
    made = network(nodes, [2], **values)
    folded = made.folded()

    assert sorted(folded.get_params()) == ["a", "b", "c"]
    assert folded.get_params() == made.get_params()
    assert "Shape" not in operators(folded)


def test_what_draws_numbers_is_not_drawn_once() -> None:
    nodes = [
        oh.make_node("Shape", ["x"], ["shape"]),
        oh.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        oh.make_node("RandomNormalLike", ["zeros"], ["noise"]),
        oh.make_node("Add", ["x", "noise"], ["y"]),
    ]
    folded = network(nodes, [1000]).folded()
    executor = FRAMEWORKS.get("reference").from_model(folded)
    x = np.zeros(1000, np.float32)
    first, second = (executor.inference({"x": x})["y"] for _ in range(2))

    assert "RandomNormalLike" in operators(folded)
    assert not np.array_equal(first, second)


def test_network_without_constants_is_itself() -> None:
    made = network([oh.make_node("Relu", ["x"], ["y"])], [2])

    assert made.folded() is made


def test_mode_and_losses_are_kept() -> None:
    made = network(RESHAPED, [2, 6], rank=3, first=np.array([0]), rest=np.array([3, 2])).train()
    made.append_loss("MeanSquaredError", prediction="y")
    folded = made.folded()

    assert folded.mode == "train"
    assert list(folded.losses) == ["loss"]
    assert list(folded.inputs) == list(made.inputs)


def test_dropout_still_drops_in_training() -> None:
    nodes = [*RESHAPED[:-1], oh.make_node("Reshape", ["x", "sizes"], ["z"]), oh.make_node("Dropout", ["z"], ["y"])]
    folded = network(nodes, [2, 600], rank=3, first=np.array([0]), rest=np.array([3, 200])).train().folded()
    x = np.ones((2, 600), np.float32)
    trained = FRAMEWORKS.get("reference").from_model(folded).inference({"x": x})["y"]
    evaluated = FRAMEWORKS.get("reference").from_model(folded.eval()).inference({"x": x})["y"]

    assert operators(folded) == ["Reshape", "Dropout"]
    assert 0.4 < np.mean(np.asarray(trained) == 0) < 0.6
    np.testing.assert_array_equal(evaluated, x.reshape(2, 3, 200))


def convolution(bias: np.ndarray, *, constant: bool) -> Network:
    """A convolution whose bias stands in a node (so it is a constant) or in an initializer that is trained."""
    nodes = [oh.make_node("Conv", ["x", "w", "b"], ["y"])]
    stored = {"w": np.ones((2, 1, 1, 1), np.float32)}
    if constant:
        nodes.insert(0, oh.make_node("Constant", [], ["b"], value=onh.from_array(bias, "value")))
    else:
        stored["b"] = bias
    return network(nodes, [1, 1, 2, 2], rank=4, **stored)


def test_a_bias_of_constant_zeros_is_left_out() -> None:
    made = convolution(np.zeros(2, np.float32), constant=True)
    folded = made.folded()
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)

    (node,) = folded.model.graph
    assert [value.name for value in node.inputs if value is not None] == ["x", "w"]
    assert not folded.constants
    for executed in (made, folded):
        y = FRAMEWORKS.get("reference").from_model(executed).inference({"x": x})["y"]
        np.testing.assert_array_equal(y, np.concatenate([x, x], 1))


@pytest.mark.parametrize(
    ("bias", "constant"),
    [(np.zeros(2, np.float32), False), (np.array([0, 1e-30], np.float32), True), (np.full(2, np.nan, "f"), True)],
    ids=["trained", "not zero", "nan"],
)
def test_another_bias_stays(bias: np.ndarray, constant: bool) -> None:
    folded = convolution(bias, constant=constant).folded()

    (node,) = (node for node in folded.model.graph if node.op_type == "Conv")
    assert [value.name for value in node.inputs if value is not None] == ["x", "w", "b"]
