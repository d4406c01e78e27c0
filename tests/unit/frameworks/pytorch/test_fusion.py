"""Linear layers of exported networks become one call, and compute the same."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest

torch = pytest.importorskip("torch")

from deep500.frameworks import FRAMEWORKS  # noqa: E402
from deep500.networks import Network  # noqa: E402

STREAM = np.random.default_rng(0)


def built(nodes: list[onnx.NodeProto], outputs: dict[str, int], **stored: np.ndarray) -> Network:
    value = oh.make_tensor_value_info
    graph = oh.make_graph(
        nodes,
        "graph",
        [value("x", onnx.TensorProto.FLOAT, ["n", 5, 4])],
        [value(name, onnx.TensorProto.FLOAT, [None] * rank) for name, rank in outputs.items()],
        [onh.from_array(array.astype(np.float32), name) for name, array in stored.items()],
    )
    return Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))


def targets(network: Network) -> list[str]:
    module = FRAMEWORKS.get("pytorch").from_model(network).graph_module()
    return [getattr(node.target, "__name__", str(node.target)) for node in module.graph.nodes if "call" in node.op]


TRANSPOSE = oh.make_node("Transpose", ["w"], ["t"], perm=[1, 0])
PRODUCT = oh.make_node("MatMul", ["x", "t"], ["p"])
W, B = STREAM.standard_normal((3, 4)), STREAM.standard_normal(3)


@pytest.mark.parametrize(
    ("nodes", "outputs", "stored", "expected"),
    [
        ([TRANSPOSE, PRODUCT, oh.make_node("Add", ["p", "b"], ["y"])], {"y": 3}, {"w": W, "b": B}, ["linear"]),
        ([TRANSPOSE, PRODUCT, oh.make_node("Add", ["b", "p"], ["y"])], {"y": 3}, {"w": W, "b": B}, ["linear"]),
        ([TRANSPOSE, oh.make_node("MatMul", ["x", "t"], ["y"])], {"y": 3}, {"w": W}, ["linear"]),
        (
            [TRANSPOSE, PRODUCT, oh.make_node("Add", ["p", "b"], ["y"])],
            {"y": 3, "p": 3},
            {"w": W, "b": B},
            ["linear", "add"],
        ),
        ([TRANSPOSE, PRODUCT, oh.make_node("Add", ["p", "p"], ["y"])], {"y": 3}, {"w": W}, ["linear", "add"]),
        (
            [TRANSPOSE, PRODUCT, oh.make_node("Add", ["p", "b"], ["y"])],
            {"y": 3},
            {"w": W, "b": B[:1]},
            ["linear", "add"],
        ),
        ([oh.make_node("MatMul", ["x", "w"], ["y"])], {"y": 3}, {"w": W.T}, ["matmul"]),
    ],
)
def test_calls(
    nodes: list[onnx.NodeProto], outputs: dict[str, int], stored: dict[str, np.ndarray], expected: list[str]
) -> None:
    network = built(nodes, outputs, **stored)
    x = STREAM.standard_normal((2, 5, 4)).astype(np.float32)
    found = FRAMEWORKS.get("pytorch").from_model(network).inference({"x": x})
    wanted = FRAMEWORKS.get("reference").from_model(network).inference({"x": x})

    assert sorted(targets(network)) == sorted(expected)
    for name, value in wanted.items():
        np.testing.assert_allclose(np.asarray(found[name]), value, rtol=1e-5, atol=1e-6)
