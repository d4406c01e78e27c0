from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.models._residual import ResidualFeatures


@pytest.mark.parametrize(
    ("depth", "blocks", "features"), [(18, 8, 32), (34, 16, 32), (50, 16, 128), (101, 33, 128), (152, 50, 128)]
)
def test_blocks_and_features(depth: int, blocks: int, features: int) -> None:
    network = ResidualFeatures(3, depth, 4)
    layers = [n for n, _ in network.named_parameters() if n.endswith("weight") and "shortcut" not in n]

    assert (len(network.blocks), network.features) == (blocks, features)
    assert len(layers) == depth - 1  # the classifier is the last


@pytest.mark.parametrize("depth", [0, 17, 18.0, True, None, "18", [18]])
def test_other_depths_are_refused(depth: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"depth was given as .* accepted are 18, 34, 50, 101, 152"):
        ResidualFeatures(3, depth, 4)
