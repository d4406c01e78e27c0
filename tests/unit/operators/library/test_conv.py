"""Edge cases of Conv; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library import conv as module
from deep500.operators.library.conv import Conv

RNG = np.random.default_rng(0)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape)


def test_known_values() -> None:
    y = Conv(pads=[1, 0])(np.array([[[1.0, 2.0, 3.0]]]), np.array([[[10.0, 1.0]]]))

    assert y.tolist() == [[[1.0, 12.0, 23.0]]]


@pytest.mark.parametrize(
    ("auto_pad", "expected"), [("SAME_UPPER", [3, 5, 3]), ("SAME_LOWER", [1, 3, 5]), ("VALID", [3, 5])]
)
def test_where_odd_padding_goes(auto_pad: str, expected: list[float]) -> None:
    assert Conv(auto_pad=auto_pad)(np.array([[[1.0, 2.0, 3.0]]]), ones(1, 1, 2)).ravel().tolist() == expected


def test_empty_batch() -> None:
    inputs = [np.zeros((0, 2, 4, 4), np.float32), np.ones((3, 2, 3, 3), np.float32), np.ones(3, np.float32)]

    (y,) = Conv().forward(inputs)
    gradients = Conv().backward([y], inputs, (y,))

    assert y.shape == (0, 3, 2, 2)
    assert [g.shape for g in gradients] == [x.shape for x in inputs]
    assert not gradients[1].any()
    assert not gradients[2].any()


def test_batch_is_divided_into_parts_without_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [RNG.standard_normal((7, 4, 5, 5)), RNG.standard_normal((6, 2, 3, 3)), RNG.standard_normal(6)]
    operator = Conv(group=2, strides=[2, 1], pads=[1, 0, 0, 1])
    (whole,) = operator.forward(inputs)
    grads = [RNG.standard_normal(whole.shape)]
    expected = operator.backward(grads, inputs, (whole,))

    monkeypatch.setattr(module, "_CHUNK_BYTES", 1)
    (parts,) = operator.forward(inputs)

    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-13)
    for one, other in zip(operator.backward(grads, inputs, (parts,)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_depthwise_is_one_convolution_a_channel() -> None:
    x, w = RNG.standard_normal((2, 3, 4, 4)), RNG.standard_normal((3, 1, 3, 3))

    y = Conv(group=3)(x, w)

    for c in range(3):
        np.testing.assert_allclose(y[:, c : c + 1], Conv()(x[:, c : c + 1], w[c : c + 1]))


def test_what_no_window_sees_has_no_gradient() -> None:
    x, w = ones(1, 1, 6), ones(1, 1, 2)
    operator = Conv(strides=[3], pads=[0, 0])
    y = operator(x, w)

    by_x, _ = operator.backward([np.ones_like(y)], [x, w], (y,))

    assert by_x.ravel().tolist() == [1, 1, 0, 1, 1, 0]


def test_nan_stays_in_its_windows() -> None:
    x = ones(1, 1, 5)
    x[0, 0, 0] = np.nan

    assert np.isnan(Conv()(x, ones(1, 1, 2))).ravel().tolist() == [True, False, False, False]


def test_sixteen_bits_are_accumulated_in_thirty_two() -> None:
    # 4096 + 1 is not a float16: accumulated in it, the sum would stay at 2048.
    y = Conv()(np.ones((1, 1, 4096), np.float16), np.ones((1, 1, 4096), np.float16))

    assert y.dtype == np.float16
    assert y.item() == 4096


@pytest.mark.parametrize(
    ("attributes", "shapes", "message"),
    [
        ({"strides": [0]}, None, "strides is .0.; accepted is a list of integers from 1 on"),
        ({"pads": [-1, 0]}, None, "pads is .-1, 0.; accepted is a list of integers from 0 on"),
        ({"dilations": "ab"}, None, "dilations is 'ab'"),
        ({"group": 0}, None, "group is 0; accepted is an integer from 1 on"),
        ({"auto_pad": "SAME"}, None, "accepted is one of NOTSET, SAME_UPPER, SAME_LOWER, VALID"),
        ({"auto_pad": "VALID", "pads": [1, 1]}, None, "accepted is one of the two"),
        ({}, [(1, 2, 4), (1, 1, 2)], "X.shape.1. equal to W.shape.1. . group"),
        ({"group": 2}, [(1, 2, 4), (3, 1, 2)], "W.shape.0. a multiple of group"),
        ({}, [(1, 4), (1, 4)], "of one rank from 3 on"),
        ({}, [(1, 1, 4), (1, 1, 2, 2)], "of one rank"),
        ({"kernel_shape": [3]}, [(1, 1, 4), (1, 1, 2)], "the same spatial shape"),
        ({"strides": [1, 1]}, [(1, 1, 4), (1, 1, 2)], "strides is .1, 1. for an input of 1 spatial axes"),
        ({"pads": [1]}, [(1, 1, 4), (1, 1, 2)], "accepted are 2 entries"),
        ({}, [(1, 1, 1), (1, 1, 2)], "not larger than the padded input"),
        ({"dilations": [4]}, [(1, 1, 4), (1, 1, 2)], "do not fit into the input's spatial shape"),
        ({}, [(1, 1, 4), (2, 1, 2), (3,)], "accepted is .2,., one a feature map"),
        ({}, [(1, 1, 4)], "the input W is missing"),
        ({}, [(1, 1, 4), (1, 1, 2), (1,), (1,)], "received 4 inputs"),
    ],
)
def test_refusals(attributes: dict, shapes: list | None, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        Conv(**attributes).forward([ones(*shape) for shape in shapes or []])


def test_dtypes_must_be_equal_floats() -> None:
    with pytest.raises(OperatorError, match="inputs of one dtype"):
        Conv()(np.ones((1, 1, 2), np.float32), ones(1, 1, 2))
    with pytest.raises(OperatorError, match="float64"):
        Conv()(np.ones((1, 1, 2), np.int32), np.ones((1, 1, 2), np.int32))
