"""Quantisation: scales by tensor, axis and block, and products of quantised tensors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep500.core.errors import InvalidInputError  # noqa: E402
from tests.unit.frameworks.pytorch.lowering.nodes import evaluate, run  # noqa: E402

TYPES = ["int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2", "float8_e4m3fn", "float4_e2m1fn"]

#: Shape of the scale, and the attributes, for a tensor ``[3, 6, 4]``.
LAYOUTS: list[tuple[tuple[int, ...], dict[str, int]]] = [
    ((), {}),
    ((1,), {}),
    ((6,), {}),
    ((4,), {"axis": -1}),
    ((3, 2, 4), {"block_size": 3}),
    ((3, 2, 4), {"block_size": 4}),
]


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("shape", "attributes"), LAYOUTS)
def test_there_and_back(name: str, shape: tuple[int, ...], attributes: dict[str, int]) -> None:
    random = np.random.default_rng(5)
    x = (random.normal(size=(3, 6, 4)) * 4).astype(np.float32)
    scale = random.uniform(0.3, 1.0, shape).astype(np.float32)
    zero_point = (np.zeros(shape) if name.startswith("float") else random.integers(0, 2, shape)).astype(_dtype(name))

    (q,) = run("QuantizeLinear", [x, scale, zero_point], **attributes)
    (y,) = run("DequantizeLinear", [q, scale, zero_point], **attributes)

    (expected,) = evaluate("QuantizeLinear", [x, scale, zero_point], **attributes)
    assert q.dtype == expected.dtype
    np.testing.assert_array_equal(q.astype(np.float32), expected.astype(np.float32))
    (expected,) = evaluate("DequantizeLinear", [q, scale, zero_point], **attributes)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_what_is_out_of_range_is_kept_within_it() -> None:
    x = np.array([np.inf, -np.inf, 1e30, -1e30, np.nan], np.float32)

    (q,) = run("QuantizeLinear", [x, np.float32(0.5), np.uint8(3)])

    assert q.tolist() == [255, 0, 255, 0, 0]


def test_a_scale_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"shape \[5\] was given for a tensor of shape \[3, 6, 4\], axis 1"):
        run("QuantizeLinear", [np.zeros((3, 6, 4), np.float32), np.ones(5, np.float32)])
    with pytest.raises(InvalidInputError, match="it has no such axis"):
        run("DequantizeLinear", [np.zeros(2, np.int8), np.ones(2, np.float32)], axis=3)


@pytest.mark.parametrize("x", [np.zeros((2, 2)), np.array([1.0, 2.0]), np.array([-3.0]), np.zeros((0,))])
def test_dynamic_quantisation(x: Any) -> None:
    given = x.astype(np.float32)

    y, scale, zero_point = run("DynamicQuantizeLinear", [given], outputs=3)

    assert y.dtype == zero_point.dtype == np.uint8
    if x.size:
        for received, expected in zip((y, scale, zero_point), evaluate("DynamicQuantizeLinear", [given], outputs=3)):
            np.testing.assert_array_equal(received, expected)


def test_one_zero_point_a_row_and_one_a_column() -> None:
    random = np.random.default_rng(2)
    a, b = random.integers(0, 255, (4, 3)).astype(np.uint8), random.integers(-128, 127, (3, 5)).astype(np.int8)
    zero_a, zero_b = random.integers(0, 255, 4).astype(np.uint8), random.integers(-128, 127, 5).astype(np.int8)

    (y,) = run("MatMulInteger", [a, b, zero_a, zero_b])

    wide = a.astype(np.int32) - zero_a.astype(np.int32)[:, None], b.astype(np.int32) - zero_b.astype(np.int32)
    np.testing.assert_array_equal(y, wide[0] @ wide[1])


@pytest.mark.parametrize(
    "attributes", [{}, {"pads": [1, 0, 2, 1], "strides": [2, 1]}, {"auto_pad": "SAME_UPPER"}, {"dilations": [2, 1]}]
)
def test_convolutions(attributes: dict[str, Any]) -> None:
    random = np.random.default_rng(8)
    x, w = (
        random.integers(0, 255, (2, 4, 6, 5)).astype(np.uint8),
        random.integers(-99, 99, (6, 2, 3, 3)).astype(np.int8),
    )
    expected = np.zeros((0, 0, 0, 0), np.int32)
    zeros = np.uint8(100), np.int8(3)

    (y,) = run("ConvInteger", [x, w, *zeros], expected=expected, group=2, **attributes)
    np.testing.assert_array_equal(y, evaluate("ConvInteger", [x, w, *zeros], group=2, **attributes)[0])

    scales = np.float32(0.1), random.uniform(0.1, 0.3, 6).astype(np.float32), np.float32(9.0)
    bias = random.integers(-500, 500, 6).astype(np.int32)
    channels = random.integers(-9, 9, 6).astype(np.int8)
    tensors = [x, scales[0], zeros[0], w, scales[1], channels, scales[2], np.uint8(120), bias]
    (y,) = run("QLinearConv", tensors, expected=expected.astype(np.uint8), group=2, **attributes)
    np.testing.assert_array_equal(y, evaluate("QLinearConv", tensors, group=2, **attributes)[0])
