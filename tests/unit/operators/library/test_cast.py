"""Edge cases of Cast, Constant and Clip; values and derivatives are in the conformance suite."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from deep500.core.errors import OperatorError
from deep500.operators.library.cast import Cast
from deep500.operators.library.clip import Clip
from deep500.operators.library.constant import Constant


@pytest.mark.parametrize(
    ("x", "to", "expected"),
    [
        (np.array([1.9, -1.9]), TensorProto.INT32, np.array([1, -1], np.int32)),
        (np.array([0.0, -0.0, np.nan, 0.1]), TensorProto.BOOL, np.array([False, False, True, True])),
        (np.array([True, False]), TensorProto.BFLOAT16, np.array([1, 0], ml_dtypes.bfloat16)),
        (np.array([200], np.int16), TensorProto.INT8, np.array([-56], np.int8)),
        (np.array([1e30]), TensorProto.FLOAT16, np.array([np.inf], np.float16)),
        (np.array([3.5], ml_dtypes.bfloat16), TensorProto.INT64, np.array([3], np.int64)),
        (np.array(2.0), TensorProto.FLOAT, np.array(2.0, np.float32)),
    ],
)
def test_cast(x: np.ndarray, to: int, expected: np.ndarray) -> None:
    y = Cast(to=to)(x)

    assert (y.dtype, y.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(y, expected)


def test_gradient_of_a_cast_between_floats() -> None:
    x = np.ones(2)
    (y,) = Cast(to=TensorProto.BFLOAT16).forward([x])

    (by_x,) = Cast(to=TensorProto.BFLOAT16).backward([y], [x], (y,))

    assert by_x.dtype == np.float64
    assert by_x.tolist() == [1, 1]
    assert Cast(to=TensorProto.FLOAT).backward([np.ones(2, np.float32)], [np.array([1, 2])], ()) == (None,)


def test_cast_refuses() -> None:
    with pytest.raises(OperatorError, match=r"to is 8 \(STRING\); accepted are 1 \(FLOAT\), 11 \(DOUBLE\)"):
        Cast(to=TensorProto.STRING)
    with pytest.raises(OperatorError, match="input of <U1"):
        Cast(to=TensorProto.FLOAT)(np.array(["a"]))


def test_constant_keeps_the_tensor_for_itself() -> None:
    given = np.array([1.0, 2.0], np.float16)
    operator = Constant(value=given)
    given[0] = 5

    (y,) = operator.forward([])

    assert y.dtype == np.float16
    assert y.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        y[0] = 3
    assert operator.backward([y], [], (y,)) == ()


def test_constant_refuses() -> None:
    for attributes in ({}, {"value_int": 1, "value_float": 1.0}, {"value_string": "a"}):
        with pytest.raises(OperatorError, match="exactly one of value, value_float"):
            Constant(**attributes)
    with pytest.raises(OperatorError, match=r"value_int is 1\.5"):
        Constant(value_int=1.5)
    with pytest.raises(OperatorError, match="received 1 inputs"):
        Constant(value_int=1).forward([np.ones(1)])


def test_clip() -> None:
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, np.nan])
    low, high = np.array(-1.0), np.array(1.0)

    (y,) = Clip().forward([x, low, high])
    gradients = Clip().backward([np.ones(6)], [x, low, high], (y,))
    inverted = Clip().backward([np.ones(6)], [x, high, low], Clip().forward([x, high, low]))

    np.testing.assert_array_equal(y, [-1, -1, 0, 1, 1, np.nan])
    assert [g.tolist() for g in gradients] == [[0, 1, 1, 1, 0, 1], 1, 1]
    assert [g.tolist() for g in inverted] == [[0, 0, 0, 0, 0, 1], 0, 5]
    assert Clip()(np.array([-5, 5], np.int8), None, np.array(2, np.int8)).tolist() == [-5, 2]
    assert Clip()(np.array(3.0)).shape == ()
    assert Clip()(x) is not x


def test_clip_refuses() -> None:
    with pytest.raises(OperatorError, match=r"min of shape \(1,\); accepted is a scalar"):
        Clip()(np.ones(2), np.ones(1))
    with pytest.raises(OperatorError, match="one dtype"):
        Clip()(np.ones(2), np.array(1))
