from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model


def test_parameters() -> None:
    network = create_model("mlp", shape=(2, 3), classes=4, hidden=(7, 5))

    assert {name: d.shape for name, d in network.parameters.items()} == {
        "layers.0.weight": (7, 6),
        "layers.0.bias": (7,),
        "layers.1.weight": (5, 7),
        "layers.1.bias": (5,),
        "layers.2.weight": (4, 5),
        "layers.2.bias": (4,),
    }
    assert network.parameter_count == 7 * 7 + 5 * 8 + 4 * 6
    assert [node.op_type for node in network.model.graph] == ["Flatten", "Gemm", "Relu", "Gemm", "Relu", "Gemm"]


@pytest.mark.parametrize(("hidden", "layers"), [((), 1), ([], 1), (9, 2), ([9], 2), ((3, 3, 3), 4)])
def test_hidden_sizes(hidden: Any, layers: int) -> None:
    assert len(create_model("mlp", shape=(5,), hidden=hidden).parameters) == 2 * layers


@pytest.mark.parametrize("hidden", [0, -1, (0,), (1.0,), (True,), True, None, "ab", {3}])
def test_other_hidden_sizes_are_refused(hidden: Any) -> None:
    with pytest.raises(InvalidInputError, match="hidden was given as"):
        create_model("mlp", hidden=hidden)
