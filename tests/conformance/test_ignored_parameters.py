"""A parameter that only some ranks' branch of a network uses is updated alike on all ranks."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest

from deep500.distributed.communicators.local import run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent

FLOAT = onnx.TensorProto.FLOAT


def branches() -> onnx.ModelProto:
    """Return a network whose loss is the mean square of ``x * w`` where the sum of x is positive, else of ``x * v``."""
    value, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    sides = {
        name: onnx.helper.make_graph(
            [node("Mul", ["x", name], [f"x{name}"])], name, [], [value(f"x{name}", FLOAT, [3])]
        )
        for name in ("w", "v")
    }
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["is_positive"]),
        node("If", ["is_positive"], ["y"], then_branch=sides["w"], else_branch=sides["v"]),
        node("Mul", ["y", "y"], ["square"]),
        node("ReduceMean", ["square"], ["loss"], keepdims=0),
    ]
    stored = [onnx.numpy_helper.from_array(np.ones(3, np.float32), name) for name in ("w", "v")]
    stored.append(onnx.numpy_helper.from_array(np.float32(0), "zero"))
    graph = onnx.helper.make_graph(nodes, "branches", [value("x", FLOAT, [3])], [value("loss", FLOAT, [])], stored)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("framework", ["reference", "onnxruntime"])
def test_ranks_that_take_different_branches_stay_equal(framework: str) -> None:
    if framework == "onnxruntime":
        pytest.importorskip("onnxruntime")
    made = importlib.import_module(f"deep500.frameworks.{framework}")
    x = np.array([1.0, 2.0, 3.0], np.float32)

    def train(communicator: Any) -> dict[str, Any]:
        executor = made.from_model(branches())
        optimizer = DistributedOptimizer(GradientDescent(executor, "loss", learning_rate=0.1), communicator)
        optimizer.step({"x": x if communicator.rank == 0 else -x})
        return {name: executor.fetch(name) for name in ("w", "v")}

    expected = 1 - 0.1 * (2 * x * x / 3) / 2  # half of the gradient of the one rank that has it
    for parameters in run_threads(2, train):
        np.testing.assert_allclose(parameters["w"], expected, rtol=1e-6)
        np.testing.assert_allclose(parameters["v"], expected, rtol=1e-6)
