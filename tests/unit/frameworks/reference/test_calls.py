"""What a call hands to its backward."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh

from deep500.frameworks.reference.executor import from_model
from deep500.networks.network import Network


def test_outputs_that_the_node_does_not_name_reach_the_backward() -> None:
    nodes = [
        oh.make_node("Mul", ["x", "w"], ["h"], name="product"),
        oh.make_node("Dropout", ["h"], ["y"], name="dropout"),
        oh.make_node("ReduceSum", ["y"], ["loss"], name="sum", keepdims=0),
    ]
    given = [oh.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N"])]
    results = [oh.make_tensor_value_info("loss", onnx.TensorProto.FLOAT, [])]
    # The mask is not an output of the node, and cannot be told from a product that is 0.
    weights = [onnx.numpy_helper.from_array(np.zeros(200, np.float32), "w")]
    graph = oh.make_graph(nodes, "dropout", given, results, weights)
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))
    executor = from_model(network)
    executor.network.train()

    executor.inference_and_backprop({"x": np.ones(200, np.float32)}, "loss")

    (gradient,) = executor.network.fetch_tensors(["w.grad"])
    values, counts = np.unique(gradient, return_counts=True)
    assert values.tolist() == [0.0, 2.0]
    assert counts.min() > 50
