from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model


def test_parameters() -> None:
    network = create_model("lenet", shape=(1, 32, 32), padding=0)

    assert {name: d.shape for name, d in network.parameters.items()} == {
        "conv1.weight": (6, 1, 5, 5),
        "conv1.bias": (6,),
        "conv2.weight": (16, 6, 5, 5),
        "conv2.bias": (16,),
        "fc1.weight": (120, 400),
        "fc1.bias": (120,),
        "fc2.weight": (84, 120),
        "fc2.bias": (84,),
        "fc3.weight": (10, 84),
        "fc3.bias": (10,),
    }
    assert network.states == network.constants == {}
    assert network.parameter_count == 61_706  # as counted for LeNet-5 everywhere
    assert network.parameter_size_bytes == 4 * 61_706


@pytest.mark.parametrize(
    ("shape", "padding", "flat"),
    [((1, 28, 28), 2, 784), ((3, 32, 20), 2, 640), ((1, 4, 4), 2, 16), ((1, 16, 16), 0, 16)],
)
def test_size_before_the_linear_layers(shape: tuple[int, ...], padding: int, flat: int) -> None:
    assert create_model("lenet", shape=shape, padding=padding).parameters["fc1.weight"].shape == (120, flat)


@pytest.mark.parametrize("shape", [(784,), (28, 28), (1, 1, 28, 28)])
def test_samples_must_be_images(shape: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"LeNet needs samples of shape \(C, H, W\)"):
        create_model("lenet", shape=shape)


@pytest.mark.parametrize(("shape", "padding"), [((1, 3, 28), 2), ((1, 28, 15), 0)])
def test_image_of_which_nothing_is_left(shape: Any, padding: int) -> None:
    with pytest.raises(InvalidInputError, match="nothing is left"):
        create_model("lenet", shape=shape, padding=padding)


@pytest.mark.parametrize("padding", [-1, 1.0, True, "same", None])
def test_padding_is_a_number_from_0(padding: Any) -> None:
    with pytest.raises(InvalidInputError, match="padding was given as"):
        create_model("lenet", padding=padding)
