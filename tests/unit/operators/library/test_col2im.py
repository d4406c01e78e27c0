"""Edge cases of Col2Im; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.col2im import Col2Im


def test_overlapping_blocks_add_up() -> None:
    blocks = np.ones((1, 2, 2), np.int32)

    image = Col2Im()(blocks, np.array([3]), np.array([2]))

    assert image.dtype == np.int32
    assert image.tolist() == [[[1, 2, 1]]]


def test_integers_have_no_gradient() -> None:
    inputs = [np.ones((1, 1, 3), np.int64), np.array([3]), np.array([1])]

    assert Col2Im().backward([np.ones((1, 1, 3))], inputs, ()) == (None, None, None)


@pytest.mark.parametrize(
    ("shape", "image", "block", "message"),
    [
        ((1, 3, 2), [3], [2], r"accepted is \[N, C \* 2, 2\]"),
        ((1, 2, 3), [3], [2], r"accepted is \[N, C \* 2, 2\]"),
        ((2, 2), [3], [2], r"accepted is \[N, C \* 2, 2\]"),
        ((1, 2, 2), [3, 3], [2], "one a spatial axis"),
        ((1, 2, 2), [0], [2], "sizes from 1"),
        ((1, 2, 2), [1], [2], "do not fit"),
    ],
)
def test_refusals(shape: tuple, image: list, block: list, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        Col2Im().forward([np.ones(shape), np.array(image), np.array(block)])
