"""Edge cases of the operators that change shapes; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.concat import Concat
from deep500.operators.library.flatten import Flatten
from deep500.operators.library.identity import Identity
from deep500.operators.library.reshape import Reshape
from deep500.operators.library.squeeze import Squeeze
from deep500.operators.library.transpose import Transpose
from deep500.operators.library.unsqueeze import Unsqueeze


def shape(*sizes: int) -> np.ndarray:
    return np.array(sizes, np.int64)


@pytest.mark.parametrize(
    ("old", "wanted", "allowzero", "new"),
    [
        ((2, 3), (0, -1), 0, (2, 3)),
        ((2, 3, 4), (0, -1), 0, (2, 12)),
        ((0, 3, 4), (0, -1), 0, (0, 12)),
        ((0, 3), (-1, 3), 0, (0, 3)),
        ((0, 3), (3, 0), 1, (3, 0)),
        ((2, 0), (0, 0), 1, (0, 0)),
        ((1, 1), (), 0, ()),
        ((), (1, -1), 0, (1, 1)),
    ],
)
def test_reshape(old: tuple, wanted: tuple, allowzero: int, new: tuple) -> None:
    operator, data = Reshape(allowzero=allowzero), np.zeros(old)

    y = operator(data, shape(*wanted))

    assert y.shape == new
    assert operator.backward([y], [data, shape(*wanted)], (y,))[0].shape == old


@pytest.mark.parametrize(
    ("old", "wanted", "allowzero"),
    [
        ((2, 3), (4,), 0),
        ((2,), (-1, -1), 0),
        ((2,), (-2,), 0),
        ((2,), (2, 0), 0),
        ((2, 0), (0, -1), 1),
        ((3,), (2, -1), 0),
    ],
)
def test_reshape_refuses(old: tuple, wanted: tuple, allowzero: int) -> None:
    with pytest.raises(OperatorError, match="at most one -1, with as many elements as the data"):
        Reshape(allowzero=allowzero)(np.zeros(old), shape(*wanted))


def test_reshape_refuses_a_shape_of_floats() -> None:
    with pytest.raises(OperatorError, match="accepted is int64 of one dimension"):
        Reshape()(np.ones(2), np.array([2.0]))


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        (Flatten(), [np.array([[True]])]),
        (Identity(), [np.array(3)]),
        (Reshape(), [np.array([1, 2]), shape(2, 1)]),
        (Squeeze(), [np.array([[1]], np.uint8)]),
        (Unsqueeze(), [np.array(1 + 2j), shape(0)]),
        (Transpose(), [np.array([["a", "b"]])]),
        (Concat(axis=0), [np.array([1]), np.array([2, 3])]),
    ],
)
def test_other_dtypes_pass_and_have_no_gradient(operator, inputs: list) -> None:
    outputs = operator.forward(inputs)

    assert outputs[0].dtype == inputs[0].dtype
    assert operator.backward([None], inputs, outputs) == (None,) * len(inputs)
    assert operator.backward(outputs, inputs, outputs) == (None,) * len(inputs)


def test_flatten() -> None:
    assert Flatten(axis=-1)(np.zeros((2, 0, 3))).shape == (0, 3)
    assert Flatten(axis=0)(np.zeros((2, 3))).shape == (1, 6)
    assert Flatten()(np.array(5.0)).tolist() == [[5]]
    with pytest.raises(OperatorError, match=r"axis is 3 .* accepted is from -2 to 2"):
        Flatten(axis=3)(np.zeros((2, 2)))


def test_squeeze_and_unsqueeze_refuse() -> None:
    with pytest.raises(OperatorError, match="accepted are axes of the size 1"):
        Squeeze()(np.ones((1, 2)), shape(1))
    with pytest.raises(OperatorError, match="axes that differ from one another"):
        Squeeze()(np.ones((1, 1)), shape(0, -2))
    with pytest.raises(OperatorError, match="accepted is from -3 to 2"):
        Unsqueeze()(np.ones((2, 2)), shape(3))
    with pytest.raises(OperatorError, match="the input axes is missing"):
        Unsqueeze()(np.ones(2))


def test_transpose_refuses() -> None:
    with pytest.raises(OperatorError, match="every axis from 0 to r - 1 exactly once"):
        Transpose(perm=[0, 0])
    with pytest.raises(OperatorError, match="accepted are 2 entries"):
        Transpose(perm=[0])(np.ones((2, 2)))


def test_concat_refuses() -> None:
    with pytest.raises(OperatorError, match="at least one tensor"):
        Concat(axis=0).forward([])
    with pytest.raises(OperatorError, match="one shape except for the size of axis 0"):
        Concat(axis=0)(np.ones((1, 2)), np.ones((1, 3)))
    with pytest.raises(OperatorError, match="one dtype"):
        Concat(axis=0)(np.ones(1), np.ones(1, np.float32))
    with pytest.raises(OperatorError, match="scalar"):
        Concat(axis=0)(np.array(1.0))
