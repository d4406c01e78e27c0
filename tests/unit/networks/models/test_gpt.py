from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate

SMALL = {"classes": 9, "features": 8, "layers": 2, "heads": 2, "context": 6}
LLAMA = {"classes": 32000, "context": 2048, "tied": False}


# Numbers of parameters of the published weights of LLaMA 7B and of TinyLlama 1.1B.
@pytest.mark.parametrize(
    ("count", "arguments"),
    [
        (6_738_415_616, {"features": 4096, "layers": 32, "heads": 32, "hidden": 11008}),
        (1_100_048_384, {"features": 2048, "layers": 22, "heads": 32, "shared_heads": 4, "hidden": 5632}),
    ],
)
def test_number_of_parameters_is_the_published_one(count: int, arguments: dict[str, Any]) -> None:
    # Weights are drawn when they are read: none is here.
    assert create_model("gpt", **LLAMA, **arguments).parameter_count == count


@pytest.mark.parametrize("shared_heads", [None, 1])
@pytest.mark.parametrize("tied", [False, True])
def test_scores_depend_on_what_came_before_only(shared_heads: int | None, tied: bool) -> None:
    network = create_model("gpt", shared_heads=shared_heads, tied=tied, dtype="float64", **SMALL)
    tokens = np.array([[1, 2, 3, 4], [8, 7, 6, 5]])
    changed = tokens.copy()
    changed[:, 2] = 0
    a, b = (evaluate(network, input=x)["output"] for x in (tokens, changed))

    assert network.outputs["output"].shape == ("batch", 9, "sequence")
    np.testing.assert_allclose(a[:, :, :2], b[:, :, :2], rtol=1e-12)
    assert (np.abs(a - b).max(axis=1)[:, 2:] > 1e-9).all()


def test_a_shorter_text_has_the_scores_of_its_beginning() -> None:
    network = create_model("gpt", dtype="float64", **SMALL)
    tokens = np.array([[1, 2, 3, 4, 5, 6]])
    whole = evaluate(network, input=tokens)["output"]

    np.testing.assert_allclose(evaluate(network, input=tokens[:, :3])["output"], whole[:, :, :3], rtol=1e-12)


@pytest.mark.parametrize("shared_heads", [None, 1])
def test_rotation_is_the_same_in_the_dtype_that_onnx_rotates_not(shared_heads: int | None) -> None:
    tokens = np.array([[1, 2, 3, 4, 5]])
    wide, narrow = (create_model("gpt", dtype=d, shared_heads=shared_heads, **SMALL) for d in ("float64", "float32"))
    operators = [{node.op_type for node in network.model.graph} for network in (wide, narrow)]
    for name in wide.parameters:  # large enough for the positions to count
        wide.feed_tensor(name, 8 * wide.fetch_tensors([name])[0])
        narrow.feed_tensor(name, wide.fetch_tensors([name])[0].astype(np.float32))

    assert ["RotaryEmbedding" in found for found in operators] == [False, True]
    expected = evaluate(wide, input=tokens)["output"]
    assert np.abs(evaluate(narrow, input=tokens)["output"] - expected).max() < 1e-4 * np.abs(expected).max()


def test_first_weights() -> None:
    network = create_model("gpt", layers=2, classes=1000)
    names = ["embedding.weight", "layers.0.query.weight", "layers.1.attended.weight", "layers.1.down.weight"]
    deviations = [weight.std() for weight in network.fetch_tensors(names)]

    np.testing.assert_allclose(deviations, [0.02, 0.02, 0.01, 0.01], rtol=0.01)
    assert network.parameters["layers.0.gate.weight"].shape == (768, 2048)
    assert list(network.constants)[-2:] == ["rotary.cosines", "rotary.sines"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"heads": 3}, "heads=3 does not divide features=8"),
        ({"heads": 8}, "Heads of an odd size"),
        ({"shared_heads": 3}, "shared_heads=3 does not divide heads=2"),
        ({"shape": (7,)}, "Texts of 7 tokens do not fit into context=6"),
        ({"rotary_base": 1}, "rotary_base was given as 1"),
        ({"tied": None}, "tied was given as None"),
        ({"dropout": 1.0}, "dropout was given as 1.0"),
    ],
)
def test_other_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        create_model("gpt", **{**SMALL, **arguments})
