from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_forward, check_gradients, random, single


@pytest.mark.parametrize("op_type", ["Neg", "Exp", "Log", "Sqrt", "Abs", "Identity"])
def test_unary(op_type: str) -> None:
    x = random(3, 4) if op_type in ("Neg", "Exp", "Abs", "Identity") else np.abs(random(3, 4)) + 0.1
    check_forward(op_type, [x])
    check_gradients(op_type, [x])


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Pow"])
@pytest.mark.parametrize(("a", "b"), [((2, 3), (2, 3)), ((2, 3), (3,)), ((3, 1), (2, 1, 4)), ((2, 3), ())])
def test_binary(op_type: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    arrays = [np.abs(random(*a)) + 0.5, np.abs(random(*b)) + 0.5]
    check_forward(op_type, arrays, symbolic=False)
    check_gradients(op_type, arrays)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul"])
def test_integers(op_type: str, dtype: str) -> None:
    check_forward(op_type, [np.array([7, -7, 2], dtype), np.array([2, 2, -3], dtype)])


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8"])
def test_integer_division_truncates(dtype: str) -> None:
    model, given = single("Div", [np.array([7, -7, 7, -7], dtype), np.array([2, 2, -2, -2], dtype)])
    y = from_model(model).inference(given)["y0"].numpy()
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, [3, -3, -3, 3])


def test_power_keeps_the_dtype_of_the_base() -> None:
    check_forward("Pow", [np.array([2.0, 3.0]), np.array([3, 2], "int64")])
    check_forward("Pow", [np.array([4, 9], "int32"), np.array([0.5, 0.5], "float32")])
    check_forward("Pow", [np.array([4, 9], "int64"), np.array([2, 1], "int32")])


@pytest.mark.parametrize("bounds", [(-0.5, 0.5), (None, 0.5), (-0.5, None), (None, None), (0.5, -0.5)])
def test_clip(bounds: tuple[float | None, float | None]) -> None:
    limits = [None if bound is None else np.array(bound) for bound in bounds]
    check_forward("Clip", [random(3, 4), *limits], fed=(0, 1, 2))


@pytest.mark.parametrize(
    ("source", "target"),
    [("float64", "float32"), ("float32", "int64"), ("int64", "float64"), ("bool", "float32"), ("float32", "bool")],
)
def test_cast(source: str, target: str) -> None:
    x = np.array([-1.7, 0.0, 1.7, 2.0]).astype(source)
    model, given = single(
        "Cast", [x], to=int(getattr(TensorProto, {"float32": "FLOAT", "float64": "DOUBLE"}.get(target, target.upper())))
    )
    y = from_model(model).inference(given)["y0"].numpy()
    assert y.dtype == target
    np.testing.assert_array_equal(y, x.astype(target))


def test_bfloat16() -> None:
    a = np.array([1.5, -2.25, 3.0], ml_dtypes.bfloat16)
    model, given = single("Mul", [a, a])
    y = from_model(model).inference(given)["y0"].numpy()
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y.astype("float32"), (a * a).astype("float32"))
