from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate


# Numbers of parameters of vgg11, vgg11_bn, ... in torchvision's documentation of its models and weights.
@pytest.mark.parametrize(
    ("depth", "count", "normalized"),
    [
        (11, 132_863_336, 132_868_840),
        (13, 133_047_848, 133_053_736),
        (16, 138_357_544, 138_365_992),
        (19, 143_667_240, 143_678_248),
    ],
)
def test_number_of_parameters_is_the_published_one(depth: int, count: int, normalized: int) -> None:
    network = create_model("vgg", depth=depth)

    assert network.parameter_count == create_model(f"vgg{depth}").parameter_count == count
    assert create_model(f"vgg{depth}", normalization=True).parameter_count == normalized
    assert sum(name.endswith("weight") for name in network.parameters) == depth


def test_poolings_follow_the_stages() -> None:
    network = create_model("vgg16", shape=(3, 64, 32), width=1, hidden=4)
    operators = "".join({"Conv": "c", "MaxPool": "p"}.get(node.op_type, "") for node in network.model.graph)
    maps = [
        d.shape[0] for name, d in network.parameters.items() if "conv" in name and name.endswith("weight") and d.shape
    ]

    assert operators == "ccpccpcccpcccpcccp"
    assert maps == [1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 8, 8]
    assert network.parameters["linear1.weight"].shape == (4, 8 * 2)


def test_rate_of_dropout() -> None:
    def dropouts(**arguments: Any) -> int:
        network = create_model("vgg11", shape=(3, 32, 32), width=1, hidden=4, **arguments)
        return sum(node.op_type == "Dropout" for node in network.model.graph)

    assert dropouts() == 2
    assert dropouts(dropout=0.0) == 0


def test_inference_drops_nothing() -> None:
    images = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)
    scores = [
        evaluate(create_model("vgg11", shape=(3, 32, 32), width=1, hidden=4, dropout=rate), input=images)["output"]
        for rate in (0.0, 0.9)
    ]

    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 12}, "depth was given as 12; accepted are 11, 13, 16, 19"),
        ({"shape": (3, 31, 64)}, "Of a 31x64 image nothing is left"),
        ({"dropout": 1}, "dropout was given as 1"),
        ({"normalization": 1}, "normalization was given as 1"),
    ],
)
def test_other_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        create_model("vgg", **arguments)

    assert message in str(caught.value)
