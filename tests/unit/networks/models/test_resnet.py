from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model


def test_names() -> None:
    network = create_model("resnet", depth=8, shape=(3, 8, 8))
    block = ["conv1.weight", "norm1.scale", "norm1.bias", "conv2.weight", "norm2.scale", "norm2.bias"]
    shortcut = ["shortcut_conv.weight", "shortcut_norm.scale", "shortcut_norm.bias"]
    statistics = ["running_mean", "running_var"]

    assert list(network.parameters) == [
        *("conv.weight", "norm.scale", "norm.bias"),
        *(f"blocks.0.{name}" for name in block),
        *(f"blocks.{i}.{name}" for i in (1, 2) for name in [*block, *shortcut]),
        *("classifier.weight", "classifier.bias"),
    ]
    norms = ["norm", "blocks.0.norm1", "blocks.0.norm2"]
    norms += [f"blocks.{i}.{name}" for i in (1, 2) for name in ("norm1", "norm2", "shortcut_norm")]
    assert list(network.states) == [f"{norm}.{name}" for norm in norms for name in statistics]


@pytest.mark.parametrize(("depth", "millions"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)])
def test_number_of_parameters_is_that_of_the_paper(depth: int, millions: float) -> None:
    network = create_model("resnet", depth=depth, shape=(3, 32, 32))

    # Table 6 of the paper; its shortcuts are free of parameters, ours are two convolutions with normalisation.
    shortcuts = 16 * 32 + 32 * 64 + 2 * (32 + 64)
    assert round((network.parameter_count - shortcuts) / 1e6, 1 if depth == 110 else 2) == millions


def test_depth_counts_the_layers_on_the_longest_path() -> None:
    network = create_model("resnet", depth=26, width=2, shape=(3, 8, 8))
    weights = [name for name in network.parameters if name.endswith("weight") and "shortcut" not in name]

    assert len(weights) == 26


def test_each_stage_halves_the_image_and_doubles_the_maps() -> None:
    network = create_model("resnet", depth=8, width=4, shape=(3, 9, 16))
    shapes = [str(node.outputs[0].shape) for node in network.model.graph if node.op_type == "Add"]

    assert shapes == ["[batch,4,9,16]", "[batch,8,5,8]", "[batch,16,3,4]"]


@pytest.mark.parametrize("depth", [0, 2, 7, 9, 18, 20.0, True, None, "20"])
def test_other_depths_are_refused(depth: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"depth was given as .* accepted is 6n \+ 2"):
        create_model("resnet", depth=depth)


@pytest.mark.parametrize("width", [0, -2, 1.5, True, None, "16"])
def test_other_widths_are_refused(width: Any) -> None:
    with pytest.raises(InvalidInputError, match="width was given as"):
        create_model("resnet", width=width)


def test_samples_must_be_images() -> None:
    with pytest.raises(InvalidInputError, match=r"resnet needs samples of shape \(C, H, W\)"):
        create_model("resnet", shape=(784,))
