from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate

SMALL = {"classes": 7, "embedding": 4, "hidden": 4}


def test_number_of_parameters() -> None:
    # Embedding and scores of 10,000 tokens, biases of the scores, and twice 4 H (I + H + 2).
    medium = 2 * 10000 * 650 + 10000 + 2 * 4 * 650 * (650 + 650 + 2)

    assert create_model("lstm_language_model").parameter_count == medium
    assert create_model("lstm_language_model", tied=True).parameter_count == medium - 10000 * 650


def test_inputs_are_tokens_and_labels_follow_them() -> None:
    network = create_model("lstm_language_model", **SMALL)
    network.append_loss("SoftmaxCrossEntropyLoss")

    assert network.inputs == {
        "input": TensorDescriptor("int64", ("batch", "sequence")),
        "label": TensorDescriptor("int64", ("batch", "sequence")),
    }
    assert network.outputs["output"].shape == ("batch", 7, "sequence")
    assert create_model("lstm_language_model", 2, shape=(5,), **SMALL).outputs["output"].shape == (2, 7, 5)


@pytest.mark.parametrize("layers", [1, 3])
def test_scores_depend_on_what_came_before_only(layers: int) -> None:
    network = create_model("lstm_language_model", layers=layers, dtype="float64", **SMALL)
    tokens = np.array([[1, 2, 3, 4], [6, 5, 4, 3]])
    changed = tokens.copy()
    changed[:, 2] = 0
    a, b = (evaluate(network, input=x)["output"] for x in (tokens, changed))

    np.testing.assert_array_equal(a[:, :, :2], b[:, :, :2])
    assert (a[:, :, 2:] != b[:, :, 2:]).any(axis=1).all()


def test_tied_scores_are_products_with_the_embedding() -> None:
    network = create_model("lstm_language_model", tied=True, **SMALL)

    assert "scores.weight" not in network.parameters
    (product,) = (node for node in network.model.graph if node.op_type == "MatMul")
    assert product.inputs[0] is not None
    assert product.inputs[0].name == "embedding.weight"


def test_first_weights_are_uniform() -> None:
    network = create_model("lstm_language_model")
    for weight in network.fetch_tensors(["embedding.weight", "layers.0.recurrent_weight"]):
        assert 0.0499 < np.abs(weight).max() <= 0.05
        assert weight.std() == pytest.approx(0.1 / np.sqrt(12), rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tied": True, "hidden": 5}, "A shared table needs equal sizes; received embedding=4 and hidden=5"),
        ({"layers": 0}, "layers was given as 0"),
        ({"shape": (3, 4)}, r"needs samples of shape \(sequence,\)"),
        ({"shape": ("not a name",)}, "Its sizes may be texts"),
    ],
)
def test_other_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        create_model("lstm_language_model", **{**SMALL, **arguments})
