from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_forward, model_of, random, weighted_sum


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize(
    ("shape", "attributes"), [((), {}), ((3,), {"axis": -2}), ((3, 3), {"axis": 1, "block_size": 2})]
)
@pytest.mark.parametrize("fed", [(0,), (0, 1, 2)])
def test_linear(dtype: str, shape: tuple[int, ...], attributes: dict[str, int], fed: tuple[int, ...]) -> None:
    scale = (np.abs(random(*shape)) + 0.1).astype("float32")
    zero = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    x = 100 * random(3, 5, dtype="float32")
    check_forward("QuantizeLinear", [x, scale, zero], fed=fed, symbolic=False, **attributes)
    check_forward("DequantizeLinear", [x.astype(dtype), scale, zero], fed=fed, symbolic=False, **attributes)


def test_products_are_exact() -> None:
    numbers = np.random.default_rng(0)
    a, b = (numbers.integers(0, 256, (300, 300)).astype(np.uint8) for _ in range(2))
    check_forward("MatMulInteger", [a, b, np.array(255, np.uint8), np.arange(300).astype(np.uint8)], tolerance=0)
    check_forward("ConvInteger", [a[None, None], b[:8, :25].reshape(8, 1, 5, 5), np.array(3, np.uint8)], tolerance=0)


def test_gradient_by_the_scale() -> None:
    nodes = [
        helper.make_node("Abs", ["s"], ["scale"]),
        helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["y0"], axis=0),
    ]
    stored = {"s": np.float32([2, 3]), "zero": np.int8([1, 2])}
    executor = from_model(weighted_sum(model_of(nodes, {"x": ("int8", [2, 3])}, ["y0"], stored)))
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    executor.inference_and_backprop({"x": x})
    weights, gradient = executor.network.fetch_tensors(["weights", "s.grad"])
    np.testing.assert_allclose(gradient, (weights * (x - np.int8([[1], [2]]))).sum(1), rtol=1e-6)
