from __future__ import annotations

import itertools

import numpy as np
import pytest

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_forward, check_gradients, random, single

CASES = {
    "plain": ((2, 3, 6, 6), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "overlapping": ((2, 3, 6, 7), {"kernel_shape": [3, 2]}),
    "padded": ((2, 2, 6, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "asymmetric": ((1, 2, 6, 7), {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [0, 1, 2, 0]}),
    "ceil": ((1, 2, 6, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "ceil, padded": ((1, 2, 7, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1}),
    "ceil, last window outside": (
        (1, 1, 5, 6),
        {"kernel_shape": [1, 1], "strides": [3, 3], "ceil_mode": 1, "pads": [0] * 4},
    ),
    "dilated": ((1, 2, 8, 8), {"kernel_shape": [3, 2], "dilations": [2, 3], "strides": [2, 1]}),
    "same upper": ((1, 2, 7, 8), {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "same lower": ((1, 2, 7, 8), {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "valid": ((1, 2, 7, 8), {"kernel_shape": [2, 3], "auto_pad": "VALID"}),
    "one dimension": ((2, 3, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    "three dimensions": (
        (1, 2, 4, 5, 6),
        {"kernel_shape": [2, 2, 3], "strides": [2, 1, 2], "pads": [0, 1, 1, 0, 0, 1]},
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_max_pool(case: str, dtype: str) -> None:
    shape, attributes = CASES[case]
    if case == "same lower":
        # onnx.reference pads on the wrong side here; these are the pads that SAME_LOWER stands for.
        attributes = {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 0, 0]}
    # All negative: a zero from the padding would win.
    check_forward("MaxPool", [-1 - np.abs(random(*shape, dtype=dtype))], **attributes)


def test_max_pool_of_integers() -> None:
    x = np.random.default_rng(0).integers(-128, 127, (1, 2, 5, 5)).astype(np.int8)
    model, given = single("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2], pads=[1, 0, 0, 1])
    y = from_model(model).inference(given)["y0"].numpy()
    padded = np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 1)], constant_values=-128)
    np.testing.assert_array_equal(y, padded.reshape(1, 2, 3, 2, 3, 2).max((3, 5)))


def test_max_pool_same_lower() -> None:
    shape, attributes = CASES["same lower"]
    x = random(*shape)
    model, given = single("MaxPool", [x], **attributes)
    explicit, _ = single("MaxPool", [x], kernel_shape=[2, 3], strides=[2, 2], pads=[1, 1, 0, 0])
    expected = from_model(explicit).inference(given)["y0"].numpy()
    np.testing.assert_array_equal(from_model(model).inference(given)["y0"].numpy(), expected)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "count_include_pad"), [("float64", 0), ("float64", 1), ("float32", 0)])
def test_average_pool(case: str, dtype: str, count_include_pad: int) -> None:
    shape, attributes = CASES[case]
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    arrays = [random(*shape, dtype=dtype)]
    check_forward("AveragePool", arrays, tolerance=tolerance, count_include_pad=count_include_pad, **attributes)


@pytest.mark.parametrize(
    ("op_type", "case"),
    list(
        itertools.product(
            ["MaxPool", "AveragePool"],
            ["padded", "ceil, padded", "ceil, last window outside", "dilated", "one dimension", "three dimensions"],
        )
    ),
)
def test_gradients(op_type: str, case: str) -> None:
    shape, attributes = CASES[case]
    check_gradients(op_type, [random(*shape)], **attributes)


def test_maximum_of_padding_only() -> None:
    model, given = single("MaxPool", [np.ones((1, 1, 2))], kernel_shape=[1], pads=[0, 1])
    np.testing.assert_array_equal(from_model(model).inference(given)["y0"].numpy(), [[[1, 1, -np.inf]]])


def test_average_of_padding_only() -> None:
    model, given = single("AveragePool", [np.ones((1, 1, 2))], kernel_shape=[1], pads=[0, 1])
    np.testing.assert_array_equal(from_model(model).inference(given)["y0"].numpy(), [[[1, 1, 0]]])


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 2, 4)])
def test_global_pools(op_type: str, shape: tuple[int, ...]) -> None:
    x = random(*shape)
    model, given = single(op_type, [x])
    reduce = np.max if op_type == "GlobalMaxPool" else np.mean
    expected = reduce(x, axis=tuple(range(2, x.ndim)), keepdims=True)
    y = from_model(model).inference(given)["y0"].numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-12)
    check_gradients(op_type, [random(*shape)])


def test_indices() -> None:
    """The second output says where each maximum is in the whole image, as ONNX counts."""
    x = random(2, 3, 4, 6)
    model, given = single("MaxPool", [x], outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    maxima, indices = (y.numpy() for y in from_model(model).inference(given).values())
    np.testing.assert_array_equal(x.reshape(-1)[indices], maxima)
    np.testing.assert_array_equal(maxima, x.reshape(2, 3, 2, 2, 3, 2).max((3, 5)))
