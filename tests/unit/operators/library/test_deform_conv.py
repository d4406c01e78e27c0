"""Edge cases of DeformConv; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.conv import Conv
from deep500.operators.library.deform_conv import DeformConv

RNG = np.random.default_rng(0)


def test_without_offsets_it_is_conv() -> None:
    x, w, b = RNG.standard_normal((2, 4, 5, 4)), RNG.standard_normal((6, 2, 2, 3)), RNG.standard_normal(6)
    attributes = {"group": 2, "pads": [1, 0, 0, 1], "strides": [2, 1]}
    expected = Conv(**attributes)(x, w, b)
    offset = np.zeros((2, 2 * 2 * 2 * 3, *expected.shape[2:]))

    np.testing.assert_allclose(DeformConv(offset_group=2, **attributes)(x, w, offset, b), expected, atol=1e-12)


def test_infinite_pixels_that_are_not_reached_do_not_count() -> None:
    x = np.array([[[np.inf, 1.0, 2.0]]])

    assert DeformConv()(x, np.ones((1, 1, 1)), np.array([[[2.0, 0.5, 5.0]]])).tolist() == [[[2.0, 1.5, 0.0]]]


@pytest.mark.parametrize(
    ("attributes", "changes", "message"),
    [
        ({}, {0: (1, 2)}, "accepted are X"),
        ({"group": 2}, {}, "multiples of the groups"),
        ({"offset_group": 2}, {}, "multiples of the groups"),
        ({"kernel_shape": [2]}, {}, "the same spatial shape"),
        ({}, {2: (1, 2, 3)}, r"received offset of shape \(1, 2, 3\); accepted is \(1, 1, 3\)"),
        ({}, {3: (3,)}, "received B"),
        ({}, {4: (1, 3, 3)}, "received mask"),
    ],
)
def test_refusals(attributes: dict, changes: dict, message: str) -> None:
    shapes = [(1, 1, 3), (2, 1, 1), (1, 1, 3), (2,), (1, 1, 3)]
    inputs = [np.ones(changes.get(i, shape)) for i, shape in enumerate(shapes)]

    with pytest.raises(OperatorError, match=message):
        DeformConv(**attributes).forward(inputs)
