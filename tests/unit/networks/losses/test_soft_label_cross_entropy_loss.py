from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.network import Network
from tests.unit.networks.support import evaluate, relu_model


def soft_cross_entropy(scores: np.ndarray, probabilities: np.ndarray) -> float:
    scores = scores.astype(np.float64)
    logarithms = scores - scores.max(axis=1, keepdims=True)
    logarithms -= np.log(np.exp(logarithms).sum(axis=1, keepdims=True))
    return float(-(probabilities * logarithms).sum(axis=1).mean())


@pytest.mark.parametrize("shape", [("N", 3), (4, 3), ("N", 3, 5), (4, 3, "H", 2)])
def test_label_is_like_the_scores(shape: tuple[int | str, ...]) -> None:
    network = Network.load(relu_model(*shape))
    network.append_loss("SoftLabelCrossEntropyLoss")
    generator = np.random.default_rng(0)
    sizes = [{"N": 4, "H": 5}.get(str(d), d) for d in shape]
    x = generator.random(sizes).astype(np.float32)
    label = generator.random(sizes).astype(np.float32)
    label /= label.sum(axis=1, keepdims=True)

    assert network.inputs["label"] == TensorDescriptor("float32", shape)
    loss = evaluate(network, x=x, label=label)["loss"]

    assert loss.shape == ()
    np.testing.assert_allclose(loss, soft_cross_entropy(x, label), rtol=1e-5)


def test_probabilities_of_one_class_are_class_numbers() -> None:
    soft, hard = (Network.load(relu_model("N", 3)) for _ in range(2))
    soft.append_loss("SoftLabelCrossEntropyLoss")
    hard.append_loss("SoftmaxCrossEntropyLoss")
    x = np.random.default_rng(0).random((5, 3)).astype(np.float32)
    classes = np.arange(5) % 3

    found = evaluate(soft, x=x, label=np.eye(3, dtype=np.float32)[classes])["loss"]
    np.testing.assert_allclose(found, evaluate(hard, x=x, label=classes)["loss"], rtol=1e-6)


@pytest.mark.parametrize("shape", [(), ("N",)])
def test_scores_need_a_class_dimension(shape: tuple[str, ...]) -> None:
    network = Network.load(relu_model(*shape))

    with pytest.raises(InvalidInputError, match=r"Cross-entropy needs scores of shape \[N, C\]"):
        network.append_loss("SoftLabelCrossEntropyLoss")
