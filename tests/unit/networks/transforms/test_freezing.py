from __future__ import annotations

import pytest

from deep500.core.errors import InvalidInputError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.transformation import transform
from deep500.networks.transforms.freezing import Freezing


def classifier() -> Network:
    network = create_model("lenet", shape=(1, 8, 8))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def test_chosen_parameters_become_constants_and_stay_so_in_a_file(tmp_path) -> None:
    original = classifier()

    result = transform(original, Freezing("conv*", "fc3.bias"), executor=from_model)
    result.save(tmp_path / "frozen.onnx")

    frozen = {n for n in original.parameters if n.startswith("conv") or n == "fc3.bias"}
    assert set(result.constants) >= frozen
    assert set(result.parameters) == set(original.parameters) - frozen
    assert Network.load(tmp_path / "frozen.onnx").parameters == result.parameters
    assert frozen <= set(original.parameters)


def test_everything_is_frozen_by_default() -> None:
    assert not transform(classifier(), "freezing", executor=from_model).parameters


def test_pattern_without_a_match_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"No parameter.*'cnv1.weight'.*Did you mean 'conv1.weight'"):
        transform(classifier(), Freezing("conv*", "cnv1.weight"))


@pytest.mark.parametrize("pattern", ["", 3, None])
def test_bad_patterns_are_refused(pattern) -> None:
    with pytest.raises(InvalidInputError, match="accepted are texts"):
        Freezing(pattern)
