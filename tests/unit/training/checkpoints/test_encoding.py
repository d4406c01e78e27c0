from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from deep500.core.errors import CheckpointError
from deep500.training.checkpoints._encoding import decode, encode

NUMPY = ["bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
TINY = ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"]


def round_trip(state: dict[str, Any]) -> Any:
    document, tensors = encode(state)
    return decode(json.loads(json.dumps(document, allow_nan=False)), tensors)


@pytest.mark.parametrize("name", [*NUMPY, *NARROW, *TINY])
def test_every_dtype_keeps_its_bits(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    arrays = {"matrix": np.arange(6).reshape(2, 3).astype(dtype), "scalar": np.ones((), dtype)}
    arrays["empty"] = np.zeros((0, 3), dtype)
    back = round_trip(arrays)

    for key, array in arrays.items():
        assert (back[key].dtype, back[key].shape, back[key].tobytes()) == (dtype, array.shape, array.tobytes())
        assert back[key].flags.writeable


def test_values_of_json_and_odd_keys() -> None:
    state = {"$tensor": [1e-320, 2**70, None, True, "é"], "a/b": np.ones(2), "a": {"b": np.zeros(3)}, "": {}}
    back = round_trip(state)

    assert back["$tensor"] == state["$tensor"]
    assert (back["a/b"].tolist(), back["a"]["b"].tolist(), back[""]) == ([1.0, 1.0], [0.0, 0.0, 0.0], {})


def test_numbers_that_json_has_not() -> None:
    back = round_trip({"values": [float("nan"), float("inf"), float("-inf")]})

    assert np.array_equal(back["values"], [np.nan, np.inf, -np.inf], equal_nan=True)


def test_texts_and_layouts() -> None:
    state = {"texts": np.array([["é", "b"]], object), "swapped": np.arange(3, dtype=">f4"), "t": np.eye(3, 2).T}
    back = round_trip(state)

    assert back["texts"].tolist() == [["é", "b"]]
    assert np.array_equal(back["swapped"], [0, 1, 2])
    assert np.array_equal(back["t"], np.eye(2, 3))


def test_other_tools_read_the_tensors() -> None:
    _, tensors = encode({"executor": {"parameters": {"w": np.arange(3.0)}}})

    assert safetensors.numpy.load(tensors)["executor/parameters/w"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("value", [object(), {1: 2}, {1, 2}, b"bytes", np.zeros(2, "V4")])
def test_what_cannot_be_kept_is_said(value: Any) -> None:
    with pytest.raises(CheckpointError, match="A checkpoint cannot hold"):
        encode({"deep": {"inside": value}})


def test_damage_is_said() -> None:
    document, tensors = encode({"x": np.arange(4)})

    with pytest.raises(CheckpointError, match="cannot be read"):
        decode(document, tensors[:-3])
    with pytest.raises(CheckpointError, match="is missing"):
        decode({"y": {"$tensor": "y", "dtype": "int64", "shape": [4]}}, tensors)
    with pytest.raises(CheckpointError, match=r"I64\[4\], not F32"):
        decode({"x": {"$tensor": "x", "dtype": "float32", "shape": [4]}}, tensors)
    with pytest.raises(CheckpointError, match="dtype 'system'"):
        decode({"x": {"$tensor": "x", "dtype": "system", "shape": [4]}}, encode({"x": np.zeros(4, np.uint8)})[1])
