"""What elementwise operators share: special values, integers, scalars, empty tensors, refusals."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from deep500.core.errors import OperatorError
from deep500.core.registry import Registry

LIBRARY = Registry("operator", "deep500.operators.library")
UNARY = ["abs", "exp", "leaky_relu", "log", "neg", "relu", "sigmoid", "sqrt", "tanh"]
BINARY = ["add", "div", "mul", "pow", "sub"]
INF, NAN = np.inf, np.nan
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("abs", [-INF, -0.0, NAN], [INF, 0, NAN]),
        ("exp", [1e4, -1e4, -INF, NAN], [INF, 0, 0, NAN]),
        ("leaky_relu", [-INF, INF, NAN], [-INF, INF, NAN]),
        ("log", [0, -1, INF, NAN], [-INF, NAN, INF, NAN]),
        ("neg", [INF, NAN], [-INF, NAN]),
        ("relu", [-INF, INF, NAN, -0.0], [0, INF, NAN, 0]),
        ("sigmoid", [-1e4, 1e4, -INF, INF, NAN], [0, 1, 0, 1, NAN]),
        ("sqrt", [0, -1, INF, NAN], [0, NAN, INF, NAN]),
        ("tanh", [-INF, INF, NAN], [-1, 1, NAN]),
    ],
)
def test_special_values_without_warnings(name: str, x: list[float], y: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
            (out,) = LIBRARY.get(name)().forward([np.array(x, dtype)])
            np.testing.assert_array_equal(out.astype(np.float64), y)
            LIBRARY.get(name)().backward([np.ones_like(out)], [np.array(x, dtype)], (out,))


@pytest.mark.parametrize(
    ("name", "slope"), [("abs", 0), ("relu", 0), ("leaky_relu", np.float32(0.01)), ("sqrt", INF), ("log", INF)]
)
def test_slope_at_zero(name: str, slope: float) -> None:
    operator, x = LIBRARY.get(name)(), np.zeros(1)

    assert operator.backward([np.ones(1)], [x], operator.forward([x]))[0].tolist() == [slope]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_scalars_and_empty_tensors(name: str, shape: tuple[int, ...]) -> None:
    operator, x = LIBRARY.get(name)(), np.ones(shape, np.float32)

    (y,) = operator.forward([x])
    (by_x,) = operator.backward([y], [x], (y,))

    assert isinstance(y, np.ndarray)
    assert isinstance(by_x, np.ndarray)
    assert y.shape == by_x.shape == shape
    assert y.dtype == by_x.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "dtype"),
    # Pow takes int32 and int64 only.
    [(name, dtype) for name in BINARY for dtype in INTEGERS if name != "pow" or dtype in (np.int32, np.int64)],
)
def test_integers_are_those_of_the_onnx_reference(name: str, dtype: type) -> None:
    info = np.iinfo(dtype)
    a = np.array([info.min, info.max, 7, 100, 3, 0], dtype)[:, None]
    b = np.array([1, 2, 3, 5] if name == "pow" or info.min == 0 else [1, 2, -3, 5], dtype)
    node = onnx.helper.make_node(LIBRARY.get(name).__name__, ["a", "b"], ["c"])
    operator = LIBRARY.get(name)()
    with np.errstate(all="ignore"):
        (expected,) = ReferenceEvaluator(node).run(None, {"a": a, "b": b})

    (c,) = operator.forward([a, b])

    assert c.dtype == dtype
    np.testing.assert_array_equal(c, expected)
    assert operator.backward([c], [a, b], (c,)) == (None, None)


def test_integer_division_truncates_and_keeps_all_digits() -> None:
    a, b = np.array([7, -7, 7, -7, 2**62 + 1], np.int64), np.array([2, 2, -2, -2, 1], np.int64)

    assert LIBRARY.get("div")()(a, b).tolist() == [3, -3, -3, 3, 2**62 + 1]
    assert LIBRARY.get("div")()(np.array([1, -1]), np.array([0, 0])).tolist() == [0, 0]


def test_power_of_mixed_dtypes() -> None:
    power = LIBRARY.get("pow")()

    for y in (power(np.float32([2, 3]), np.int64([3, 2])), power(np.float32([2, 3]), np.float64([3, 2]))):
        assert y.dtype == np.float32
        assert y.tolist() == [8, 9]
    assert power(np.int32([2, 9]), np.float32([-1, 0.5])).tolist() == [0, 3]
    assert power(np.int64([2, 1]), np.int64([-1, -5])).tolist() == [0, 1]
    assert power(np.int64([3**3]), np.uint8([13])).tolist() == [3**39]
    x, y = np.array([0.0, 0.0, 2.0]), np.array([0, 2, 3], np.int32)
    assert power.backward([np.ones(3)], [x, y], power.forward([x, y]))[0].tolist() == [0, 0, 12]
    x, y = np.array([0.0, 0.0, -1.0]), np.array([2.0, 0.0, 2.0])
    np.testing.assert_array_equal(power.backward([np.ones(3)], [x, y], power.forward([x, y]))[1], [0, -INF, NAN])


@pytest.mark.parametrize(("name", "dtype"), [("abs", np.int8), ("neg", np.int32), ("relu", np.int16)])
def test_unary_operators_on_integers(name: str, dtype: type) -> None:
    (y,) = LIBRARY.get(name)().forward([np.array([-3, 0, 4], dtype)])

    assert y.dtype == dtype
    assert y.tolist() == {"abs": [3, 0, 4], "neg": [3, 0, -4], "relu": [0, 0, 4]}[name]


def test_refusals() -> None:
    with pytest.raises(
        OperatorError, match=r"Add: received the shapes \(2,\) and \(3,\); accepted are shapes that broad"
    ):
        LIBRARY.get("add")()(np.ones(2), np.ones(3))
    with pytest.raises(OperatorError, match="received A of float64, B of float32; accepted are inputs of one dtype"):
        LIBRARY.get("mul")()(np.ones(2), np.ones(2, np.float32))
    with pytest.raises(
        OperatorError, match="received X of uint8; accepted are float16, bfloat16, float32, float64 and si"
    ):
        LIBRARY.get("neg")()(np.ones(2, np.uint8))
    with pytest.raises(OperatorError, match="received X of int64"):
        LIBRARY.get("exp")()(np.ones(2, np.int64))
    with pytest.raises(OperatorError, match="received A of bool"):
        LIBRARY.get("add")()(np.ones(2, np.bool_), np.ones(2, np.bool_))
    with pytest.raises(OperatorError, match="the input B is missing"):
        LIBRARY.get("sub")().forward([np.ones(2), None])
    with pytest.raises(OperatorError, match="alpha is 1e\\+300"):
        LIBRARY.get("leaky_relu")(alpha=1e300)


@pytest.mark.parametrize("name", BINARY)
def test_repeated_axes_are_summed(name: str) -> None:
    operator = LIBRARY.get(name)()
    a, b = np.full((2, 1, 3), 2.0), np.full((4, 1), 3.0)
    (c,) = operator.forward([a, b])

    by_a, by_b = operator.backward([np.ones_like(c)], [a, b], (c,))

    assert (by_a.shape, by_b.shape) == (a.shape, b.shape)
    one = operator.backward([np.ones(1)], [a[:1, 0, 0], b[:1, 0]], operator.forward([a[:1, 0, 0], b[:1, 0]]))
    np.testing.assert_allclose(by_a, 4 * one[0][0])
    np.testing.assert_allclose(by_b, 6 * one[1][0])
