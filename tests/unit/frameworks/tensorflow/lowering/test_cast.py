from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from onnx import TensorProto, helper

from deep500.frameworks.tensorflow import from_model
from deep500.frameworks.tensorflow._dtypes import BIT_FLOATS
from deep500.frameworks.tensorflow.lowering._narrow import decode, encode
from tests.unit.frameworks.tensorflow.support import check_gradients, model_of, random, single

FLOATS = [name for name in BIT_FLOATS if name != "float8_e8m0fnu"]


@pytest.mark.parametrize("dtype", BIT_FLOATS)
def test_decode_all(dtype: str) -> None:
    bits = np.arange(16 if dtype == "float4_e2m1fn" else 256, dtype=np.uint8)
    expected = bits.view(getattr(ml_dtypes, dtype)).astype(np.float32)
    np.testing.assert_array_equal(decode(tf.constant(bits), dtype).numpy(), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float64"])
def test_encode_all_of_sixteen_bits(dtype: str, source: str) -> None:
    kind, target = (
        np.dtype("float16" if source == "float64" else getattr(ml_dtypes, source, source)),
        np.dtype(getattr(ml_dtypes, dtype)),
    )
    with np.errstate(all="ignore"):  # NaN and infinity are cast, too
        x = np.arange(2**16, dtype=np.uint16).view(kind)
        x = x.astype(np.float64) if source == "float64" else x
        expected = x.astype(np.float32).astype(target).astype(np.float32)
        numbers = ~np.isnan(x)
        largest = float(ml_dtypes.finfo(target).max)
        saturated = np.clip(x.astype(np.float32), -largest, largest).astype(target).astype(np.float32)
    for saturate, values in ((False, expected), (True, saturated)):
        received = encode(tf.constant(x), dtype, saturate).numpy().view(target).astype(np.float32)
        np.testing.assert_array_equal(received, values)
        np.testing.assert_array_equal(np.signbit(received[numbers]), np.signbit(values[numbers]))


@pytest.mark.parametrize(
    ("round_mode", "exponents"), [("up", [0, 1, 1, 2, 3]), ("down", [0, 0, 0, 1, 2]), ("nearest", [0, 0, 1, 1, 3])]
)
def test_exponents(round_mode: str, exponents: list[int]) -> None:
    x = tf.constant([1, 1.25, 1.5, 2.5, 6.5])
    np.testing.assert_array_equal(encode(x, "float8_e8m0fnu", True, round_mode).numpy() - 127.0, exponents)


def test_exponents_end() -> None:
    x = tf.constant([0, np.inf, 3e38, np.nan], tf.float32)
    assert encode(x, "float8_e8m0fnu").numpy().tolist() == [0, 254, 254, 255]
    assert encode(x, "float8_e8m0fnu", False).numpy().tolist() == [0, 255, 255, 255]


@pytest.mark.parametrize("target", ["INT4", "UINT4", "INT2", "UINT2"])
@pytest.mark.parametrize("source", ["int8", "uint16", "int64", "float32"])
def test_small_integers(target: str, source: str) -> None:
    numbers = np.arange(2 if "2" in target else 8).astype(source)
    model, given = single("Cast", [numbers], to=TensorProto.DataType.Value(target), opset=25)
    (y,) = from_model(model).inference(given).values()
    array = np.asarray(y)
    assert array.dtype.name == target.lower()
    np.testing.assert_array_equal(array.astype(np.int64), given["x0"].astype(array.dtype).astype(np.int64))


def test_small_integers_lose_their_highest_bits() -> None:
    model, given = single("Cast", [np.array([-9, 7, 8, 200], np.int16)], to=TensorProto.INT4)
    (y,) = from_model(model).inference(given).values()
    assert np.asarray(y).astype(np.int64).tolist() == [7, 7, -8, -8]


@pytest.mark.parametrize(
    ("texts", "target", "numbers"),
    [
        (["1.5", "-INF", "nan", "1e3"], TensorProto.FLOAT, np.array([1.5, -np.inf, np.nan, 1000], np.float32)),
        (["9007199254740993", "-3"], TensorProto.INT64, np.array([9007199254740993, -3])),
    ],
)
def test_texts(texts: list[str], target: int, numbers: np.ndarray) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=target)
    executor = from_model(model_of([node], {"x": (object, ["N"])}, ["y"], {}))
    y = executor.inference({"x": np.array(texts, object)})["y"]
    np.testing.assert_array_equal(executor.to_numpy(y), numbers)


def test_numbers_become_texts() -> None:
    model, given = single("Cast", [np.array([1.5, -0.1], np.float32)], to=TensorProto.STRING)
    executor = from_model(model)
    assert executor.to_numpy(executor.inference(given)["y0"]).tolist() == ["1.5", "-0.1"]


def test_gradients() -> None:
    check_gradients("Cast", [random(2, 3)], to=TensorProto.DOUBLE)
