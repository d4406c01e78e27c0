from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import (
    check_forward,
    check_gradients,
    model_of,
    random,
    single,
    weighted_sum,
)

CASES = {
    "plain": ((2, 3, 6, 5), (4, 3, 3, 2), {}),
    "same": ((2, 3, 6, 5), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    "strides": ((1, 2, 7, 8), (3, 2, 3, 3), {"strides": [2, 3], "pads": [1, 1, 1, 1]}),
    "asymmetric": ((1, 2, 5, 6), (3, 2, 3, 2), {"pads": [2, 0, 1, 3]}),
    "dilations": ((1, 2, 8, 9), (3, 2, 3, 2), {"dilations": [2, 3], "pads": [1, 0, 2, 1]}),
    "dilations and strides": (
        (1, 2, 9, 9),
        (3, 2, 3, 2),
        {"dilations": [2, 3], "strides": [2, 1], "pads": [1, 0, 2, 1]},
    ),
    "groups": ((1, 4, 5, 5), (6, 2, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "groups, odd padding": ((1, 4, 5, 5), (6, 2, 3, 3), {"group": 2, "pads": [2, 0, 1, 1], "strides": [2, 2]}),
    "depthwise": ((2, 3, 6, 6), (6, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "depthwise, unequal strides": ((1, 2, 8, 9), (2, 1, 3, 3), {"group": 2, "pads": [1, 1, 1, 1], "strides": [2, 1]}),
    "depthwise, dilated": ((1, 2, 8, 9), (2, 1, 3, 3), {"group": 2, "pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    "same upper": ((1, 2, 7, 8), (3, 2, 2, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "same lower": ((1, 2, 7, 8), (3, 2, 2, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    "valid": ((1, 2, 7, 8), (3, 2, 2, 3), {"auto_pad": "VALID"}),
    "one dimension": ((2, 3, 9), (4, 3, 3), {"pads": [1, 2], "strides": [2]}),
    "one dimension, dilated, grouped": ((2, 4, 9), (4, 2, 3), {"dilations": [2], "group": 2}),
    "three dimensions": ((1, 2, 4, 5, 4), (2, 2, 2, 3, 2), {"pads": [1, 1, 0, 0, 1, 1], "strides": [1, 2, 1]}),
    "three dimensions, elements left over": (
        (1, 1, 1, 2, 3),
        (1, 1, 1, 2, 1),
        {"auto_pad": "SAME_UPPER", "strides": [1, 1, 3]},
    ),
    "three dimensions, dilated": ((1, 2, 5, 5, 4), (2, 2, 2, 3, 2), {"dilations": [2, 1, 2]}),
    "three dimensions, grouped": ((1, 2, 3, 4, 3), (2, 1, 2, 3, 2), {"group": 2, "pads": [1, 1, 1, 1, 1, 1]}),
}


@pytest.mark.parametrize("case", CASES)
def test_forward(case: str) -> None:
    image, kernel, attributes = CASES[case]
    check_forward("Conv", [random(*image), random(*kernel), random(kernel[0])], **attributes)


@pytest.mark.parametrize(
    "case",
    [
        "strides",
        "asymmetric",
        "dilations",
        "dilations and strides",
        "groups, odd padding",
        "depthwise, unequal strides",
        "depthwise, dilated",
        "one dimension, dilated, grouped",
        "three dimensions, grouped",
        "three dimensions, dilated",
    ],
)
def test_gradients(case: str) -> None:
    image, kernel, attributes = CASES[case]
    check_gradients("Conv", [random(*image), random(*kernel), random(kernel[0])], **attributes)


def test_fed_kernel() -> None:
    check_forward("Conv", [random(2, 3, 6, 5), random(4, 3, 3, 2)], fed=(0, 1))


def test_kernel_shape_attribute() -> None:
    check_forward("Conv", [random(2, 3, 6, 5), random(4, 3, 3, 2)], kernel_shape=[3, 2])


@pytest.mark.parametrize("attributes", [{"auto_pad": "SAME_LOWER", "strides": [2, 2]}, {"pads": [1, 2, 2, 1]}])
def test_unknown_image_size(attributes: dict[str, object]) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    model = model_of([node], {"x": ("float64", ["N", 2, "H", "W"])}, ["y"], {"w": random(3, 2, 4, 3)})
    executor = from_model(model)
    for height, width in ((7, 8), (10, 5)):
        x = random(2, 2, height, width)
        expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
        np.testing.assert_allclose(executor.inference({"x": x})["y"].numpy(), expected, rtol=1e-11, atol=1e-11)
    assert executor.trace_count() == 1


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float16", 1e-2)])
def test_narrow_dtypes(dtype: str, tolerance: float) -> None:
    arrays = [random(2, 3, 6, 5, dtype=dtype), random(4, 3, 3, 2, dtype=dtype)]
    check_forward("Conv", arrays, tolerance=tolerance, pads=[1, 1, 1, 0])


@pytest.mark.parametrize("case", CASES)
def test_float32_equals_float64(case: str) -> None:
    """In float32 other kernels run (oneDNN's)."""
    image, kernel, attributes = CASES[case]
    results = []
    for dtype in ("float64", "float32"):
        arrays = [random(*image, dtype=dtype), random(*kernel, dtype=dtype), random(kernel[0], dtype=dtype)]
        model, _ = single("Conv", arrays, fed=(), **attributes)
        executor = from_model(weighted_sum(model))
        executor.inference_and_backprop({})
        results.append(executor.network.fetch_tensors(["y0", "x0.grad", "x1.grad", "x2.grad"]))
    for wide, narrow in zip(*results, strict=True):
        assert narrow.dtype == np.float32
        np.testing.assert_allclose(narrow, wide, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1, 1), (2, 1, 1, 1), (1, 1, 6, 1), (1, 4, 1, 1), ()])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_constant_added_to_a_convolution_with_a_bias(shape: tuple[int, ...], is_first: bool) -> None:
    """TensorFlow adds the bias to the constant instead, and cannot when that has one element for all channels."""
    constant = helper.make_tensor("c", TensorProto.FLOAT, shape, random(*shape, dtype="float32").ravel())
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["y"]),
        helper.make_node("Constant", [], ["c"], value=constant),
        helper.make_node("Add", ["c", "y"] if is_first else ["y", "c"], ["z"]),
    ]
    stored = {"w": random(4, 3, 1, 1, dtype="float32"), "b": random(4, dtype="float32")}
    x = random(2, 3, 6, 6, dtype="float32")
    model = model_of(nodes, {"x": (x.dtype, x.shape)}, ["z"], stored)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(from_model(model).inference({"x": x})["z"], expected, rtol=1e-5, atol=1e-5)
