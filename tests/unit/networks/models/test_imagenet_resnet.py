from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model
from tests.unit.networks.support import evaluate


# Numbers of parameters of the networks with these names in torchvision's documentation of its models and weights.
@pytest.mark.parametrize(
    ("depth", "count"),
    [(18, 11_689_512), (34, 21_797_672), (50, 25_557_032), (101, 44_549_160), (152, 60_192_808)],
)
def test_number_of_parameters_is_the_published_one(depth: int, count: int) -> None:
    network = create_model("imagenet_resnet", depth=depth)
    named = create_model(f"resnet{depth}")

    assert network.parameter_count == named.parameter_count == count
    assert named.name == f"resnet{depth}"
    assert named.parameters == network.parameters
    assert named.inputs["input"].shape == ("batch", 3, 224, 224)
    assert named.outputs["output"].shape == ("batch", 1000)


def test_multiply_adds_are_those_that_are_published() -> None:
    # 1.8 and 4.1 billion for images of 224 x 224 (Table 1 of the paper says 1.8 and 3.8; the stride moved since).
    assert create_model("resnet18").flops() == pytest.approx(2 * 1.814e9, rel=0.01)
    assert create_model("resnet50").flops() == pytest.approx(2 * 4.09e9, rel=0.01)


def test_each_stage_halves_the_image() -> None:
    network = create_model("resnet50", shape=(3, 64, 96), width=2)
    shapes = [str(node.outputs[0].shape) for node in network.model.graph if node.op_type == "Add"]

    assert list(dict.fromkeys(shapes)) == ["[batch,8,16,24]", "[batch,16,8,12]", "[batch,32,4,6]", "[batch,64,2,3]"]


def test_a_bottleneck_strides_in_its_second_convolution() -> None:
    network = create_model("resnet50", width=2)
    strides = {
        node.inputs[1].name: node.attributes["strides"].as_ints()[0]
        for node in network.model.graph
        if node.op_type == "Conv" and node.inputs[1] is not None
    }

    assert strides["features.blocks.3.conv1.weight"] == 1
    assert strides["features.blocks.3.conv2.weight"] == 2
    assert strides["features.blocks.3.shortcut_conv.weight"] == 2


@pytest.mark.parametrize("size", [1, 28])
def test_small_images_are_accepted(size: int) -> None:
    network = create_model("resnet18", shape=(1, size, size), classes=4, width=2)

    assert evaluate(network, input=np.ones((2, 1, size, size), np.float32))["output"].shape == (2, 4)


def test_samples_must_be_images() -> None:
    with pytest.raises(InvalidInputError, match=r"needs samples of shape \(C, H, W\)"):
        create_model("resnet18", shape=(784,))
