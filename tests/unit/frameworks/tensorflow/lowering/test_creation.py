from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_forward, single


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(("start", "limit", "delta"), [(1, 6, 2), (6, 1, -2), (6, 1, 2), (1, 1, 1), (0, 5, 5)])
@pytest.mark.parametrize("fed", [(), (0, 1, 2)])
def test_range(dtype: str, start: int, limit: int, delta: int, fed: tuple[int, ...]) -> None:
    check_forward("Range", [np.array(v, dtype) for v in (start, limit, delta)], fed=fed)


@pytest.mark.parametrize("operator", ["RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"])
def test_seeds(operator: str) -> None:
    x = np.full((40, 20), 0.5, np.float32)
    attributes = {"sample_size": 30} if operator == "Multinomial" else {}
    model, given = single(operator, [x], seed=3.0, **attributes)
    executor = from_model(model)
    first, again = (executor.inference(given)["y0"].numpy() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    model, given = single(operator, [x], seed=4.0, **attributes)
    assert (from_model(model).inference(given)["y0"].numpy() != first).any()
    model, given = single(operator, [x], **attributes)
    executor = from_model(model)
    first, again = (executor.inference(given)["y0"].numpy() for _ in range(2))
    assert (first != again).any()


def test_laws() -> None:
    x = np.zeros((300, 300), np.float32)
    model, given = single("RandomNormalLike", [x], mean=2.0, scale=3.0, dtype=TensorProto.DOUBLE)
    y = from_model(model).inference(given)["y0"].numpy()
    assert y.dtype == np.float64
    assert abs(y.mean() - 2) < 0.1
    assert abs(y.std() - 3) < 0.1
    model, given = single("RandomUniformLike", [x], low=-1.0, high=3.0)
    y = from_model(model).inference(given)["y0"].numpy()
    assert y.min() >= -1
    assert y.max() < 3
    assert abs(y.mean() - 1) < 0.05
    model, given = single("Bernoulli", [x + 0.3], dtype=TensorProto.INT32)
    y = from_model(model).inference(given)["y0"].numpy()
    assert y.dtype == np.int32
    assert abs(y.mean() - 0.3) < 0.02
    model, given = single("Multinomial", [np.log(np.array([[0.2, 0.8]], np.float32))], sample_size=9000)
    y = from_model(model).inference(given)["y0"].numpy()
    assert y.dtype == np.int32
    assert abs(y.mean() - 0.8) < 0.03
