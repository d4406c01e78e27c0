from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_forward, check_gradients, model_of, random, single


@pytest.mark.parametrize("op_type", ["Relu", "LeakyRelu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4, 2)])
def test_default_attributes(op_type: str, shape: tuple[int, ...]) -> None:
    check_forward(op_type, [random(*shape)])
    check_gradients(op_type, [random(*shape)])


def test_slope() -> None:
    check_forward("LeakyRelu", [random(3, 4)], alpha=0.3)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_axis(op_type: str, axis: int) -> None:
    check_forward(op_type, [random(2, 3, 4, 2)], axis=axis)
    check_gradients(op_type, [random(2, 3, 2)], axis=axis)


def test_large_scores() -> None:
    """Where exp would overflow or vanish."""
    x = np.array([[0.0, 1000.0, -1000.0]])
    model, given = single("LogSoftmax", [x])
    np.testing.assert_allclose(from_model(model).inference(given)["y0"].numpy(), x - 1000, rtol=1e-15)


@pytest.mark.parametrize("op_type", ["Relu", "Sigmoid", "Tanh"])
def test_after_convolution_and_normalisation(op_type: str) -> None:
    """TensorFlow fuses the three in float32; for Tanh it has no kernel."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "s", "o", "m", "v"], ["b"], name="norm"),
        helper.make_node(op_type, ["b"], ["y0"], name="activation"),
    ]
    channel = {name: np.abs(random(3, seed=i, dtype="float32")) for i, name in enumerate("somv")}
    stored = channel | {"w": random(3, 2, 3, 3, dtype="float32")}
    model = model_of(nodes, {"x": ("float32", ["N", 2, 4, 4])}, ["y0"], stored)
    x = random(2, 2, 4, 4, dtype="float32")
    expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(from_model(model).inference({"x": x})["y0"].numpy(), expected, rtol=1e-4, atol=1e-5)
