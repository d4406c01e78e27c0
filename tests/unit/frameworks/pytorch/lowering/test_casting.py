"""Casts between all element types: exhaustive over 16-bit floats, against the package that defines the small types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx.numpy_helper
import pytest

torch = pytest.importorskip("torch")

from deep500.core.errors import InvalidNetworkError  # noqa: E402
from deep500.frameworks.pytorch._arrays import to_array, to_tensor  # noqa: E402
from deep500.frameworks.pytorch.lowering._casting import cast  # noqa: E402
from tests.unit.frameworks.pytorch.lowering.nodes import run, single_node  # noqa: E402

FLOAT8 = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]

HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("source", ["float16", "float32", "float64", "bfloat16"])
def test_floats_of_8_bits(name: str, source: str) -> None:
    x = HALVES.astype(_dtype(source))
    limits = ml_dtypes.finfo(_dtype(name))
    wide = x.astype(np.float64)

    clipped = np.clip(wide, float(limits.min), float(limits.max))
    for saturate, numbers in ((True, clipped), (False, wide)):
        expected = numbers.astype(_dtype(name)).astype(np.float32)
        received = to_array(cast(to_tensor(x), source, name, saturate)).astype(np.float32)
        np.testing.assert_array_equal(received, expected)
        np.testing.assert_array_equal(np.signbit(received[received == 0]), np.signbit(expected[expected == 0]))


def test_nothing_is_rounded_twice() -> None:
    # Just above the middle between 1 and 1.125, which a float32 cannot tell from the middle.
    x = torch.tensor([1.0625 + 1e-12, 1.0625], dtype=torch.float64)

    assert cast(x, "float64", "float8_e4m3fn").to(torch.float32).tolist() == [1.125, 1.0]


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_floats_of_4_bits(source: str) -> None:
    x = HALVES[~np.isnan(HALVES)].astype(source)

    bits = cast(to_tensor(x), source, "float4_e2m1fn")

    received = to_array(bits, "float4_e2m1fn").astype(np.float32)
    np.testing.assert_array_equal(received, x.astype(np.float32).astype(ml_dtypes.float4_e2m1fn).astype(np.float32))
    np.testing.assert_array_equal(to_array(cast(bits, "float4_e2m1fn", "float32")), received)


@pytest.mark.parametrize("round_mode", ["up", "down", "nearest"])
def test_scales(round_mode: str) -> None:
    x = np.abs(HALVES[np.isfinite(HALVES) & (HALVES != 0)]).astype(np.float32)

    received = to_array(cast(to_tensor(x), "float32", "float8_e8m0fnu", True, round_mode))

    expected = onnx.numpy_helper.to_float8e8m0(x, True, round_mode)
    np.testing.assert_array_equal(received.view(np.uint8), expected.view(np.uint8))


def test_scales_of_what_is_out_of_range() -> None:
    x = torch.tensor([0.0, float("inf"), 1e-45, 3e38, float("nan")])

    saturated = cast(x, None, "float8_e8m0fnu", True, "up").view(torch.uint8)
    strict = cast(x, None, "float8_e8m0fnu", False, "nearest").view(torch.uint8)

    assert saturated.tolist() == [0, 254, 0, 254, 255]
    assert strict.tolist() == [255] * 5


@pytest.mark.parametrize("source", ["int8", "uint16", "int64", "uint64"])
@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "int8", "uint8", "uint32", "int64"])
def test_higher_bits_of_integers_are_discarded(source: str, name: str) -> None:
    limits = np.iinfo(source)
    x = np.array([limits.min, limits.max, 0, 1, 2, 5, 100, limits.max - 6], source)
    bits = int(name[-1]) if name[-1] in "42" and name not in ("int64", "uint32") else 8 * _dtype(name).itemsize
    kept = [int(v) % 2**bits for v in x]
    signed = [v - 2**bits if not name.startswith("u") and v >= 2 ** (bits - 1) else v for v in kept]

    code = onnx.helper.np_dtype_to_tensor_dtype(_dtype(name))
    (y,) = run("Cast", [x], to=code)

    assert y.dtype == _dtype(name)
    assert [int(v) for v in y] == signed


def test_texts_are_cast_on_the_host() -> None:
    (numbers,) = run("Cast", [np.array(["1.5", "-INF", "nan"], object)], to=1)
    (texts,) = run("CastLike", [np.array([1, -3]), np.array(["x"], object)])

    np.testing.assert_array_equal(numbers, np.array([1.5, -np.inf, np.nan], np.float32))
    assert texts.tolist() == ["1", "-3"]


@pytest.mark.parametrize(
    ("source", "name", "x", "expected"),
    [
        ("int4", "uint4", [-1, 7], [15, 7]),
        ("uint2", "int2", [3, 1], [-1, 1]),
        ("uint8", "int8", [255, 1], [-1, 1]),
        ("int32", "float32", [0x3F800000, 0], [1.0, 0.0]),
        ("float16", "bfloat16", [1.0, 0.0], [0.0078125, 0.0]),
        ("int4", "float4_e2m1fn", [7, -1], [6.0, -6.0]),
    ],
)
def test_bits(source: str, name: str, x: list[float], expected: list[float]) -> None:
    code = onnx.helper.np_dtype_to_tensor_dtype(_dtype(name))
    (y,) = run("BitCast", [np.array(x).astype(_dtype(source))], to=code)

    assert y.dtype == _dtype(name)
    assert y.astype(np.float64).tolist() == expected


def test_a_round_mode_that_does_not_exist_is_refused() -> None:
    from deep500.frameworks.pytorch import backend

    model = single_node("Cast", [np.zeros(2, np.float32)], to=24, round_mode="sideways")
    with pytest.raises(InvalidNetworkError, match="round_mode='sideways'; accepted are up, down and nearest"):
        backend.run_model(model, [np.zeros(2, np.float32)])
