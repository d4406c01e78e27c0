from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.transformation import transform
from deep500.networks.transforms.layer_replacement import LayerReplacement
from deep500.operators.custom.catalogue import forget_custom_op
from deep500.operators.custom.custom_op import CustomPythonOp


class Rectifier(CustomPythonOp):
    """Numbers above 0."""

    name = "H1Rectifier"

    def forward(self, x):
        return np.maximum(x, 0)

    def backward(self, grads, inputs, outputs):
        return (grads[0] * (inputs[0] > 0),)


class Wrong(Rectifier):
    """Numbers above 0 and a bit of the others."""

    name = "H1Wrong"

    def forward(self, x):
        return np.maximum(x, np.float32(0.1) * x)


class Added(CustomPythonOp):
    """A sum of two."""

    name = "H1Added"

    def forward(self, a, b):
        return a + b


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    for name in ("H1Rectifier", "H1Wrong", "H1Added"):
        try:
            forget_custom_op(name)
        except KeyError:
            continue


def classifier() -> Network:
    network = create_model("mlp", shape=(4,), hidden=(8, 8))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def test_every_node_of_the_operator_is_replaced() -> None:
    result = transform(classifier(), LayerReplacement(Rectifier(), "Relu"), executor=from_model)

    assert [node.op_type for node in result.model.graph].count("H1Rectifier") == 2
    assert "Relu" not in [node.op_type for node in result.model.graph]


def test_nodes_can_be_chosen_by_name() -> None:
    original = classifier()
    name = next(node.name for node in original.model.graph if node.op_type == "Relu")

    result = transform(original, LayerReplacement(Rectifier(), "Relu", name), executor=from_model)

    assert [node.op_type for node in result.model.graph].count("Relu") == 1


def test_wrong_operator_is_caught() -> None:
    with pytest.raises(InvalidNetworkError, match="LayerReplacement changed what"):
        transform(classifier(), LayerReplacement(Wrong(), "Relu"), executor=from_model)


def test_other_number_of_inputs_is_refused() -> None:
    with pytest.raises(InvalidNetworkError, match=r"node .*Relu.* cannot be replaced"):
        transform(classifier(), LayerReplacement(Added(), "Relu"))


def test_choice_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no node of operator 'Tanh'"):
        transform(classifier(), LayerReplacement(Rectifier(), "Tanh"))


@pytest.mark.parametrize("arguments", [("Rectifier", "Relu"), (Rectifier(), ""), (Rectifier(), "Relu", 3)])
def test_bad_arguments_are_refused(arguments) -> None:
    with pytest.raises(InvalidInputError, match="accepted"):
        LayerReplacement(*arguments)
