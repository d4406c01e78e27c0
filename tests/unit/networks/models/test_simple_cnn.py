from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model


def test_names() -> None:
    network = create_model("simple_cnn", widths=(4, 6))

    assert {name: d.shape for name, d in network.parameters.items()} == {
        "convolutions.0.weight": (4, 1, 3, 3),
        "norms.0.scale": (4,),
        "norms.0.bias": (4,),
        "convolutions.1.weight": (6, 4, 3, 3),
        "norms.1.scale": (6,),
        "norms.1.bias": (6,),
        "classifier.weight": (10, 6),
        "classifier.bias": (10,),
    }
    assert list(network.states) == [f"norms.{i}.running_{what}" for i in (0, 1) for what in ("mean", "var")]


@pytest.mark.parametrize(
    ("shape", "pools"),
    [((1, 1, 1), 0), ((1, 1, 9), 0), ((1, 2, 9), 1), ((1, 4, 4), 2), ((1, 7, 7), 2), ((3, 99, 8), 3)],
)
def test_images_are_halved_while_they_have_two_pixels(shape: tuple[int, ...], pools: int) -> None:
    network = create_model("simple_cnn", shape=shape)

    assert sum(node.op_type == "AveragePool" for node in network.model.graph) == pools


@pytest.mark.parametrize("widths", [(), 5, None, (0,), (1.0,), (True,), "ab", {3}])
def test_other_widths_are_refused(widths: Any) -> None:
    with pytest.raises(InvalidInputError, match="widths was given as"):
        create_model("simple_cnn", widths=widths)


def test_samples_must_be_images() -> None:
    with pytest.raises(InvalidInputError, match=r"simple_cnn needs samples of shape \(C, H, W\)"):
        create_model("simple_cnn", shape=(28, 28))
