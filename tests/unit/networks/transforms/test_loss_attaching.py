from __future__ import annotations

import pytest

from deep500.core.errors import InvalidInputError, UnknownNameError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.transformation import transform
from deep500.networks.transforms.loss_attaching import LossAttaching


def test_loss_and_label_are_added_to_a_copy() -> None:
    original = create_model("mlp", shape=(4,), hidden=(8,))

    result = transform(original, LossAttaching("MeanSquaredError", label="target"), executor=from_model)

    assert list(result.losses) == ["loss"]
    assert list(result.inputs) == ["input", "target"]
    assert not original.losses


def test_second_loss_of_the_name_is_refused() -> None:
    once = transform(create_model("mlp"), "loss_attaching")

    with pytest.raises(InvalidInputError, match="has a loss named 'loss' already"):
        transform(once, "loss_attaching")


def test_unknown_loss_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        transform(create_model("mlp"), LossAttaching("NoSuchLoss"))
