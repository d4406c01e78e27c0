from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model


def test_number_of_parameters_is_the_published_one() -> None:
    # That of mobilenet_v2 in torchvision's documentation of its models and weights.
    assert create_model("mobilenet_v2").parameter_count == 3_504_872


# Table 4 of the paper: 6.9 million parameters, 585 million multiply-adds at 1.4; 3.4 and 300 at 1.
@pytest.mark.parametrize(("multiplier", "millions", "multiply_adds"), [(1.4, 6.1, 585e6), (1.0, 3.5, 300e6)])
def test_multiplier(multiplier: float, millions: float, multiply_adds: float) -> None:
    network = create_model("mobilenet_v2", multiplier=multiplier)

    assert round(network.parameter_count / 1e6, 1) == millions
    assert network.flops() == pytest.approx(2 * multiply_adds, rel=0.1)


def test_maps_are_multiples_of_8_and_few_are_lost() -> None:
    network = create_model("mobilenet_v2", multiplier=0.35, shape=(3, 32, 32))
    maps = [d.shape[0] for name, d in network.parameters.items() if name.endswith("project.conv.weight") and d.shape]

    assert list(dict.fromkeys(maps)) == [8, 16, 24, 32, 56, 112]
    assert network.parameters["classifier.weight"].shape == (1000, 1280)


def test_depthwise_convolutions_have_a_group_a_map() -> None:
    network = create_model("mobilenet_v2", shape=(3, 32, 32))
    groups = [n.attributes["group"].as_int() for n in network.model.graph if "group" in n.attributes]

    assert len(groups) == 17
    assert groups[0] == 32
    assert groups[-1] == 960


@pytest.mark.parametrize("multiplier", [0, -1.0, True, None, "1", float("nan"), float("inf"), 1e9])
def test_other_multipliers_are_refused(multiplier: Any) -> None:
    with pytest.raises(InvalidInputError, match="multiplier was given as"):
        create_model("mobilenet_v2", multiplier=multiplier)
