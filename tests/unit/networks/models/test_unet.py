from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate


def by_hand(channels: int, classes: int, depth: int, width: int) -> int:
    """Weights and biases of the 3x3 convolutions, the 2x2 ones upwards and the last 1x1 one."""
    maps = [channels, *(width << level for level in range(depth + 1))]
    down = sum(9 * b * (a + b) + 2 * b for a, b in pairwise(maps))
    up = sum(4 * 2 * n * n + n + 9 * n * (2 * n + n) + 2 * n for n in maps[1:-1])
    return down + up + width * classes + classes


@pytest.mark.parametrize(("depth", "width", "channels", "classes"), [(4, 64, 1, 2), (2, 4, 3, 5), (1, 1, 1, 1)])
def test_number_of_parameters(depth: int, width: int, channels: int, classes: int) -> None:
    network = create_model("unet", shape=(channels, 32, 32), classes=classes, depth=depth, width=width)

    assert network.parameter_count == by_hand(channels, classes, depth, width)


@pytest.mark.parametrize("upsampling", ["transposed", "resize"])
@pytest.mark.parametrize("normalization", [False, True])
def test_every_pixel_has_scores(upsampling: str, normalization: bool) -> None:
    network = create_model(
        "unet", shape=(2, 8, 12), classes=3, depth=2, width=2, upsampling=upsampling, normalization=normalization
    )
    images = np.random.default_rng(0).standard_normal((2, 2, 8, 12)).astype(np.float32)

    assert network.outputs["output"].shape == ("batch", 3, 8, 12)
    assert evaluate(network, input=images)["output"].shape == (2, 3, 8, 12)
    assert any(node.op_type == "BatchNormalization" for node in network.model.graph) == normalization
    assert any(node.op_type == "Resize" for node in network.model.graph) == (upsampling == "resize")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (1, 24, 32)}, "A 24x32 image cannot be halved 4 times"),
        ({"depth": 10**6}, "cannot be halved 1000000 times"),
        ({"depth": 0}, "depth was given as 0"),
        ({"upsampling": "none"}, "upsampling was given as 'none'; accepted are 'transposed' and 'resize'"),
    ],
)
def test_other_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        create_model("unet", **arguments)

    assert message in str(caught.value)
