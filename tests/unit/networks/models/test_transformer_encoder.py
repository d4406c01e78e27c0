from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate

SMALL = {"classes": 3, "vocabulary": 9, "features": 8, "layers": 2, "heads": 2, "context": 6}


def test_number_of_parameters_is_that_of_bert() -> None:
    # BERT-base (uncased) has 109,482,240; it adds an embedding of two segments, we add a classifier of two classes.
    assert create_model("transformer_encoder").parameter_count == 109_482_240 - 2 * 768 + 2 * 768 + 2


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_order_counts(positions: str) -> None:
    network = create_model("transformer_encoder", positions=positions, dtype="float64", **SMALL)
    a, b = (evaluate(network, input=np.array([x]))["output"] for x in ([1, 2, 3, 4], [1, 3, 2, 4]))

    assert network.outputs["output"].shape == ("batch", 3)
    assert np.abs(a - b).max() > 1e-9
    assert ("positions.weight" in network.parameters) == (positions == "learned")
    assert ("positions.weight" in network.constants) == (positions == "sinusoidal")


def test_every_token_counts() -> None:
    network = create_model("transformer_encoder", dtype="float64", **SMALL)
    a, b = (evaluate(network, input=np.array([x]))["output"] for x in ([1, 2, 3, 4], [1, 2, 3, 5]))

    assert np.abs(a - b).max() > 1e-12


def test_first_weights_are_truncated() -> None:
    network = create_model("transformer_encoder", layers=1)
    (weight,) = network.fetch_tensors(["layers.0.linear1.weight"])

    assert np.abs(weight).max() <= 0.04
    # The deviation of a normal distribution that is cut off at two deviations.
    assert weight.std() == pytest.approx(0.02 * 0.8796, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"heads": 3}, "heads=3 does not divide features=8"),
        ({"shape": (7,)}, "Texts of 7 tokens do not fit into context=6"),
        ({"positions": "none"}, "positions was given as 'none'; accepted are 'learned' and 'sinusoidal'"),
        ({"vocabulary": 0}, "vocabulary was given as 0"),
    ],
)
def test_other_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        create_model("transformer_encoder", **{**SMALL, **arguments})
