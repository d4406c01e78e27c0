from __future__ import annotations

import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model


def test_number_of_parameters_is_the_published_one() -> None:
    # That of alexnet in torchvision's documentation of its models and weights.
    assert create_model("alexnet").parameter_count == 61_100_840


def test_size_of_the_last_map() -> None:
    assert create_model("alexnet").parameters["linear1.weight"].shape == (4096, 256 * 6 * 6)
    assert create_model("alexnet", shape=(3, 63, 95)).parameters["linear1.weight"].shape == (4096, 256 * 1 * 2)


def test_small_images_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="Of a 62x224 image nothing is left"):
        create_model("alexnet", shape=(3, 62, 224))
