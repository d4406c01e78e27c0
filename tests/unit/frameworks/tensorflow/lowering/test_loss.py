from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_forward, random, single


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [None, 1, -100])
@pytest.mark.parametrize("shape", [(5, 3), (3, 3, 4), (2, 3, 2, 3)])
def test_forward(reduction: str, weighted: bool, ignore_index: int | None, shape: tuple[int, ...]) -> None:
    labels = np.random.default_rng(0).integers(0, 3, (shape[0], *shape[2:]))
    if ignore_index is not None:
        labels.flat[0] = ignore_index
    attributes = {} if ignore_index is None else {"ignore_index": ignore_index}
    arrays = [random(*shape), labels, *([np.array([0.5, 1.0, 2.0])] if weighted else [])]
    check_forward(
        "SoftmaxCrossEntropyLoss", arrays, fed=(0, 1), outputs=2, symbolic=False, reduction=reduction, **attributes
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gradient(dtype: str) -> None:
    scores, labels, weights = random(4, 3), np.array([0, 2, 1, 2], dtype), np.array([0.5, 1.0, 2.0])
    model, _ = single("SoftmaxCrossEntropyLoss", [scores, labels, weights], fed=(1,), symbolic=False, ignore_index=1)
    executor = from_model(model)
    executor.inference_and_backprop({"x1": labels}, "y0")
    (gradient,) = executor.network.fetch_tensors(["x0.grad"])
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    weight = np.where(labels == 1, 0, weights[labels])
    expected = (probabilities - np.eye(3)[labels]) * (weight / weight.sum())[:, None]
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-12)


def test_label_out_of_range() -> None:
    labels = np.array([0, 3])
    model, given = single(
        "SoftmaxCrossEntropyLoss", [random(2, 3, dtype="float32"), labels], fed=(0, 1), symbolic=False
    )
    with pytest.raises(InvalidInputError, match="label"):
        from_model(model).inference(given)
