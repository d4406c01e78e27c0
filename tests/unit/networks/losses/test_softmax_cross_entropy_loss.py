from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.losses.softmax_cross_entropy_loss import SoftmaxCrossEntropyLoss
from deep500.networks.network import Network
from tests.unit.networks.support import evaluate, relu_model


def cross_entropy(scores: np.ndarray, labels: np.ndarray) -> float:
    scores = np.moveaxis(scores.astype(np.float64), 1, -1).reshape(-1, scores.shape[1])
    logarithms = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return float(-logarithms[np.arange(len(scores)), labels.reshape(-1)].mean())


@pytest.mark.parametrize("shape", [("N", 3), (4, 3), ("N", 3, 5), (4, 3, "H", 2)])
def test_label_has_no_class_dimension(shape: tuple[int | str, ...]) -> None:
    network = Network.load(relu_model(*shape))
    network.append_loss("SoftmaxCrossEntropyLoss")
    generator = np.random.default_rng(0)
    sizes = [{"N": 4, "H": 5}.get(str(d), d) for d in shape]
    x = generator.random(sizes).astype(np.float32)
    label = generator.integers(0, 3, (sizes[0], *sizes[2:]))

    assert network.inputs["label"] == TensorDescriptor("int64", (shape[0], *shape[2:]))
    np.testing.assert_allclose(evaluate(network, x=x, label=label)["loss"], cross_entropy(x, label), rtol=1e-5)


def test_ignored_label() -> None:
    network = Network.load(relu_model("N", 3))
    network.append_loss(SoftmaxCrossEntropyLoss(ignore_index=-1))
    x = np.random.default_rng(0).random((4, 3)).astype(np.float32)

    loss = evaluate(network, x=x, label=np.array([-1, 2, -1, 0]))["loss"]

    np.testing.assert_allclose(loss, cross_entropy(x[[1, 3]], np.array([2, 0])), rtol=1e-5)


@pytest.mark.parametrize("shape", [(), ("N",)])
def test_scores_need_a_class_dimension(shape: tuple[str, ...]) -> None:
    network = Network.load(relu_model(*shape))

    with pytest.raises(InvalidInputError, match=r"Cross-entropy needs scores of shape \[N, C\]"):
        network.append_loss("SoftmaxCrossEntropyLoss")
    assert list(network.inputs) == ["x"]
