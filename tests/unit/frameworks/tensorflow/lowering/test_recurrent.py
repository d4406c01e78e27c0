from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import model_of, random


@pytest.mark.parametrize("hidden", [3, 32])
def test_gradient_of_the_fused_lstm(hidden: int) -> None:
    """TensorFlow's kernel of a whole layer, which float32 takes, has the gradients of the loop that float64 takes."""
    steps, batch, size = 4, 2, 5
    shapes = {"w": (1, 4 * hidden, size), "r": (1, 4 * hidden, hidden), "b": (1, 8 * hidden), "p": (1, 3 * hidden)}
    found, kinds = {}, {}
    for dtype in ("float32", "float64"):
        stored = {name: 0.3 * random(*shape, seed=i, dtype=dtype) for i, (name, shape) in enumerate(shapes.items())}
        nodes = [
            helper.make_node("LSTM", ["x", "w", "r", "b", "", "", "", "p"], ["y", "", "c"], hidden_size=hidden),
            helper.make_node("Mul", ["y", "y"], ["squares"]),
            helper.make_node("ReduceSum", ["squares"], ["of_states"], keepdims=0),
            helper.make_node("ReduceSum", ["c"], ["of_cells"], keepdims=0),
            helper.make_node("Add", ["of_states", "of_cells"], ["loss"]),
        ]
        stored = {name: value.astype(dtype) for name, value in stored.items()}
        executor = from_model(model_of(nodes, {"x": (dtype, [steps, batch, size])}, ["loss"], stored))
        executor.inference_and_backprop({"x": random(steps, batch, size, seed=9, dtype=dtype)}, "loss")
        found[dtype] = {name: executor.fetch(f"{name}.grad") for name in stored}
        kinds[dtype] = {operation.type for graph in executor.graphs() for operation in graph.get_operations()}
    assert any(kind.startswith("BlockLSTM") for kind in kinds["float32"])
    assert not any(kind.startswith("BlockLSTM") for kind in kinds["float64"])
    for name, expected in found["float64"].items():
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found["float32"][name] / scale, expected / scale, atol=2e-5, err_msg=name)
