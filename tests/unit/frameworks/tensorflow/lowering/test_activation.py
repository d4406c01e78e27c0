from __future__ import annotations

import numpy as np
import pytest

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_forward, check_gradients, random, single


@pytest.mark.parametrize("op_type", ["Relu", "LeakyRelu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4, 2)])
def test_default_attributes(op_type: str, shape: tuple[int, ...]) -> None:
    check_forward(op_type, [random(*shape)])
    check_gradients(op_type, [random(*shape)])


def test_slope() -> None:
    check_forward("LeakyRelu", [random(3, 4)], alpha=0.3)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_axis(op_type: str, axis: int) -> None:
    check_forward(op_type, [random(2, 3, 4, 2)], axis=axis)
    check_gradients(op_type, [random(2, 3, 2)], axis=axis)


def test_large_scores() -> None:
    """Where exp would overflow or vanish."""
    x = np.array([[0.0, 1000.0, -1000.0]])
    model, given = single("LogSoftmax", [x])
    np.testing.assert_allclose(from_model(model).inference(given)["y0"].numpy(), x - 1000, rtol=1e-15)
