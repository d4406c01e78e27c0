from __future__ import annotations

import numpy as np
import pytest

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_forward, check_gradients, random, single


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(axis: int) -> None:
    check_forward("Flatten", [random(2, 3, 4)], axis=axis)


def test_flatten_of_nothing() -> None:
    for shape, expected in (((0, 3, 4), (0, 12)), ((2, 0, 4), (2, 0))):
        model, given = single("Flatten", [np.zeros(shape)])
        assert from_model(model).inference(given)["y0"].shape == expected


@pytest.mark.parametrize("fed", [(0,), (0, 1)])
@pytest.mark.parametrize("shape", [[4, 6], [-1, 2], [0, -1], [0, 0, 2, 2], [2, 12, 1], [0, 12]])
def test_reshape(shape: list[int], fed: tuple[int, ...]) -> None:
    check_forward("Reshape", [random(2, 3, 4), np.array(shape, np.int64)], fed=fed)


def test_reshape_to_nothing() -> None:
    check_forward("Reshape", [np.zeros((0, 3)), np.array([3, 0], np.int64)], allowzero=1, symbolic=False)


@pytest.mark.parametrize("perm", [None, [1, 0, 2], [2, 1, 0]])
def test_transpose(perm: list[int] | None) -> None:
    attributes = {} if perm is None else {"perm": perm}
    check_forward("Transpose", [random(2, 3, 4)], **attributes)
    check_gradients("Transpose", [random(2, 3, 4)], **attributes)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis: int) -> None:
    arrays = [random(2, 3), random(2, 3, seed=1), random(2, 3, seed=2)]
    check_forward("Concat", arrays, axis=axis, symbolic=False)
    check_gradients("Concat", arrays, axis=axis)


@pytest.mark.parametrize("axes", [None, [], [1], [-1, 1]])
def test_squeeze(axes: list[int] | None) -> None:
    check_forward(
        "Squeeze", [random(2, 1, 3, 1), *([] if axes is None else [np.array(axes, np.int64)])], symbolic=False
    )


@pytest.mark.parametrize("axes", [[0], [1, -1], [-1, 0], [3, 1]])
def test_unsqueeze(axes: list[int]) -> None:
    check_forward("Unsqueeze", [random(2, 3), np.array(axes, np.int64)])
