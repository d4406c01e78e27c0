"""Edge cases of ConvTranspose; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.conv import Conv
from deep500.operators.library.conv_transpose import ConvTranspose

RNG = np.random.default_rng(0)
SIGNAL, ONE = np.array([[[1.0, 2.0, 3.0]]]), np.ones((1, 1, 1))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [1, 0, 0, 0, 2, 0, 0, 0, 3]),
        ({"output_padding": [2]}, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0]),
        ({"pads": [1, 2]}, [0, 0, 0, 2, 0, 0]),
        ({"auto_pad": "VALID"}, [1, 0, 0, 0, 2, 0, 0, 0, 3]),
        ({"auto_pad": "SAME_UPPER"}, [0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0]),
        ({"auto_pad": "SAME_LOWER"}, [0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0]),
        ({"output_shape": [12]}, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]),
        ({"output_shape": [7], "auto_pad": "SAME_UPPER"}, [0, 0, 0, 2, 0, 0, 0]),
    ],
)
def test_what_determines_the_padding(attributes: dict, expected: list[float]) -> None:
    operator = ConvTranspose(strides=[4], **attributes)

    assert operator(SIGNAL, ONE).ravel().tolist() == expected


def test_is_the_gradient_of_conv() -> None:
    attributes = {"group": 2, "strides": [2, 1], "pads": [1, 0, 0, 1], "dilations": [1, 2]}
    x, w = RNG.standard_normal((2, 4, 6, 7)), RNG.standard_normal((6, 2, 3, 2))
    (y,) = Conv(**attributes).forward([x, w])

    (by_x, _) = Conv(**attributes).backward([y], [x, w], (y,))

    np.testing.assert_allclose(ConvTranspose(**attributes)(y, w), by_x, atol=1e-12)


def test_bias_reaches_what_no_window_does() -> None:
    y = ConvTranspose(strides=[3])(np.zeros((1, 1, 2)), np.ones((1, 2, 1)), np.array([5.0, 6.0]))

    assert y.tolist() == [[[5.0] * 4, [6.0] * 4]]


def test_empty_batch() -> None:
    inputs = [np.zeros((0, 2, 3), np.float32), np.ones((2, 3, 2), np.float32), np.ones(3, np.float32)]

    (y,) = ConvTranspose().forward(inputs)
    gradients = ConvTranspose().backward([y], inputs, (y,))

    assert y.shape == (0, 3, 4)
    assert [g.shape for g in gradients] == [x.shape for x in inputs]


@pytest.mark.parametrize(
    ("attributes", "shapes", "message"),
    [
        ({}, [(1, 2), (2, 1)], r"accepted are X \[N, C, D1"),
        ({}, [(1, 2, 3), (3, 1, 1)], "X.shape\\[1\\] equal to W.shape\\[0\\]"),
        ({"group": 2}, [(1, 3, 3), (3, 1, 1)], "a multiple of group"),
        ({"kernel_shape": [2]}, [(1, 1, 3), (1, 1, 1)], "the same spatial shape"),
        ({}, [(1, 1, 3), (1, 2, 1), (1,)], r"accepted is \(2,\), one a feature map"),
        ({"strides": [1, 1]}, [(1, 1, 3), (1, 1, 1)], "strides is"),
        ({"output_padding": [1, 1]}, [(1, 1, 3), (1, 1, 1)], "output_padding is"),
        ({"output_shape": [1, 1]}, [(1, 1, 3), (1, 1, 1)], "output_shape is"),
        ({"pads": [4, 4]}, [(1, 1, 3), (1, 1, 1)], "accepted are pads that leave something"),
    ],
)
def test_refusals(attributes: dict, shapes: list, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        ConvTranspose(**attributes).forward([np.ones(shape) for shape in shapes])
