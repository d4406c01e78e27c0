from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate


def test_number_of_parameters() -> None:
    # ResNet-18 without its last layer, an LSTM of 256 units over 512 features, a linear layer.
    features = 11_689_512 - (512 * 1000 + 1000)

    assert create_model("resnet_lstm").parameter_count == features + 4 * 256 * (512 + 256 + 2) + 256 * 101 + 101


@pytest.mark.parametrize("time", ["time", "frames", 3])
@pytest.mark.parametrize("batch", [None, 2])
def test_frames_and_samples_may_be_open(time: int | str, batch: int | None) -> None:
    network = create_model("resnet_lstm", batch, classes=4, shape=(time, 1, 8, 8), width=1, hidden=3)
    name = batch or "batch"
    videos = np.random.default_rng(0).standard_normal((2, 3, 1, 8, 8)).astype(np.float32)

    assert network.inputs["input"].shape == (name, time, 1, 8, 8)
    assert network.outputs["output"].shape == (name, 4)
    assert evaluate(network, input=videos)["output"].shape == (2, 4)


def test_the_order_of_frames_counts_and_other_samples_do_not() -> None:
    network = create_model("resnet_lstm", classes=4, shape=("time", 1, 8, 8), width=2, hidden=3, dtype="float64")
    videos = np.random.default_rng(0).standard_normal((2, 3, 1, 8, 8))
    both = evaluate(network, input=videos)["output"]

    np.testing.assert_allclose(evaluate(network, input=videos[1:])["output"], both[1:], rtol=1e-9)
    assert not np.allclose(evaluate(network, input=videos[:, ::-1])["output"], both)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (3, 8, 8)}, r"needs samples of shape \(T, C, H, W\)"),
        ({"shape": (2, "channels", 8, 8)}, "shape was given as"),
        ({"depth": 19}, "depth was given as 19"),
        ({"hidden": 0}, "hidden was given as 0"),
    ],
)
def test_other_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        create_model("resnet_lstm", **arguments)
