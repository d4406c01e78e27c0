from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate


def test_number_of_parameters_is_the_published_one() -> None:
    # That of the generator in PyTorch's DCGAN tutorial: 100 numbers to 64 x 64 pixels, 64 maps.
    assert create_model("dcgan_generator").parameter_count == 3_576_704


@pytest.mark.parametrize("size", [8, 16, 64])
def test_images_have_the_size_and_values_between_ones(size: int) -> None:
    network = create_model("dcgan_generator", shape=(5,), classes=2, image_size=size, width=2)
    image = evaluate(network, input=np.full((3, 5), 100, np.float32))["output"]

    assert network.outputs["output"].shape == ("batch", 2, size, size)
    assert image.shape == (3, 2, size, size)
    assert np.abs(image).max() <= 1


def test_first_weights() -> None:
    network = create_model("dcgan_generator")
    weight, scale = network.fetch_tensors(["first.weight", "norms.0.scale"])

    assert weight.std() == pytest.approx(0.02, rel=0.02)
    assert scale.mean() == pytest.approx(1, abs=0.01)
    assert scale.std() == pytest.approx(0.02, rel=0.2)


@pytest.mark.parametrize("size", [0, 4, 12, 63, 8192, 16.0, True, None])
def test_other_sizes_are_refused(size: Any) -> None:
    with pytest.raises(InvalidInputError, match="image_size was given as"):
        create_model("dcgan_generator", image_size=size)


def test_noise_is_a_vector() -> None:
    with pytest.raises(InvalidInputError, match=r"needs samples of shape \(Z,\)"):
        create_model("dcgan_generator", shape=(1, 28, 28))
