from __future__ import annotations

import numpy as np
import pytest

from tests.unit.frameworks.tensorflow.support import check_forward, check_gradients, random


@pytest.mark.parametrize("op_type", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("axes", [None, [1], [0, -1], [-2], []])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes(op_type: str, axes: list[int] | None, keepdims: int) -> None:
    arrays = [random(2, 3, 4), *([] if axes is None else [np.array(axes, np.int64)])]
    check_forward(op_type, arrays, keepdims=keepdims)
    check_gradients(op_type, arrays, keepdims=keepdims)


@pytest.mark.parametrize("arrays", [[random(2, 3)], [random(2, 3), np.array([], np.int64)]])
def test_noop_with_empty_axes(arrays: list[np.ndarray]) -> None:
    check_forward("ReduceSum", arrays, noop_with_empty_axes=1)


def test_mean_of_integers() -> None:
    check_forward("ReduceMean", [np.array([[7, 9], [1, 3]], np.int32)], keepdims=0)
