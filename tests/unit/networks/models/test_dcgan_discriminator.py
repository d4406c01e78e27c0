from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate


def test_number_of_parameters_is_the_published_one() -> None:
    # That of the discriminator in PyTorch's DCGAN tutorial: 64 x 64 pixels, 64 maps.
    assert create_model("dcgan_discriminator").parameter_count == 2_765_568


@pytest.mark.parametrize("size", [8, 32])
def test_an_image_has_a_score(size: int) -> None:
    network = create_model("dcgan_discriminator", shape=(2, size, size), width=2)

    assert network.outputs["output"].shape == ("batch", 1)
    assert evaluate(network, input=np.ones((3, 2, size, size), np.float32))["output"].shape == (3, 1)


def test_first_convolution_has_no_normalisation() -> None:
    operators = [node.op_type for node in create_model("dcgan_discriminator", width=1).model.graph]

    assert operators[:5] == ["Conv", "LeakyRelu", "Conv", "BatchNormalization", "LeakyRelu"]


@pytest.mark.parametrize(("shape", "message"), [((3, 64, 32), "needs square images"), ((3, 12, 12), "powers of two")])
def test_other_images_are_refused(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        create_model("dcgan_discriminator", shape=shape)
