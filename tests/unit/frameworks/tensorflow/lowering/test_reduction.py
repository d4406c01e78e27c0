from __future__ import annotations

import numpy as np
import pytest

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_forward, check_gradients, random, single, weighted_sum


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


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_products_with_a_zero(reverse: int, exclusive: int) -> None:
    x = random(4, 2)
    x[1, 0] = x[3, 1] = 0
    check_forward("CumProd", [x, np.array(0)], opset=26, reverse=reverse, exclusive=exclusive)
    check_gradients("CumProd", [x, np.array(0)], opset=26, reverse=reverse, exclusive=exclusive)


def test_norm_at_zero_has_a_gradient() -> None:
    model, _ = single("ReduceL2", [np.zeros((2, 3))], fed=())
    executor = from_model(weighted_sum(model))
    executor.inference_and_backprop({})
    np.testing.assert_array_equal(executor.network.fetch_tensors(["x0.grad"])[0], 0)
