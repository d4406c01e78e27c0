from __future__ import annotations

import pytest

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.flops import node_flops
from deep500.networks.operator_node import OperatorNode


# Steps 5, batch 3, inputs 4, hidden 2; per unit four gates of 2 * 4 + 2 * 2 + 1, biases 2 each, peepholes 6, update 9.
@pytest.mark.parametrize(
    ("directions", "given", "flops"),
    [
        (1, "XWR", 5 * 3 * 2 * (4 * 13 + 9)),
        (1, "XWRB", 5 * 3 * 2 * (4 * 15 + 9)),
        (2, "XWRB", 2 * 5 * 3 * 2 * (4 * 15 + 9)),
        (1, "XWRB---P", 5 * 3 * 2 * (4 * 15 + 9 + 6)),
    ],
)
def test_lstm(directions: int, given: str, flops: int) -> None:
    shapes = {
        "X": (5, 3, 4),
        "W": (directions, 8, 4),
        "R": (directions, 8, 2),
        "B": (directions, 16),
        "P": (directions, 6),
    }
    types = tuple(TensorDescriptor("float32", shapes[name]) if name in shapes else None for name in given)
    names = tuple(name.strip("-") for name in given)
    output = TensorDescriptor("float32", (5, directions, 3, 2))

    assert node_flops(OperatorNode("n", "", "LSTM", 22, {"hidden_size": 2}, names, ("y",), types, (output,))) == flops
