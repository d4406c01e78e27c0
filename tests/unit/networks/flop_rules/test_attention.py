from __future__ import annotations

from typing import Any

import pytest

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.flops import node_flops
from deep500.networks.operator_node import OperatorNode

FLAT = {"q_num_heads": 2, "kv_num_heads": 2}


# Batch 3, two heads, 4 queries of 5 keys, heads of 6 and values of 7; softmax 5; queries and keys are scaled.
@pytest.mark.parametrize(
    ("shapes", "attributes", "flops"),
    [
        ([(3, 2, 4, 6), (3, 2, 5, 6), (3, 2, 5, 7)], {}, 120 * (12 + 14 + 5) + 144 + 180),
        ([(3, 4, 12), (3, 5, 12), (3, 5, 14)], FLAT, 120 * (12 + 14 + 5) + 144 + 180),
        ([(3, 4, 12), (3, 5, 6), (3, 5, 7)], {**FLAT, "kv_num_heads": 1}, 120 * (12 + 14 + 5) + 144 + 90),
        ([(3, 2, 4, 6), (3, 2, 5, 6), (3, 2, 5, 7)], {"is_causal": 1, "softcap": 2.0}, 120 * (31 + 4) + 144 + 180),
        ([(3, 2, 4, 6), (3, 2, 5, 6), (3, 2, 5, 7), (4, 5)], {}, 120 * (31 + 1) + 144 + 180),
        # With 10 keys from before: three times as many scores.
        (
            [(3, 2, 4, 6), (3, 2, 5, 6), (3, 2, 5, 7), None, (3, 2, 10, 6), (3, 2, 10, 7)],
            {},
            360 * 31 + 144 + 3 * 180,
        ),
    ],
)
def test_attention(shapes: list[tuple[int, ...] | None], attributes: dict[str, Any], flops: int) -> None:
    types = tuple(None if shape is None else TensorDescriptor("float32", shape) for shape in shapes)
    names = tuple("" if shape is None else f"x{i}" for i, shape in enumerate(shapes))
    output = TensorDescriptor("float32", (3, 2, 4, 7))

    assert node_flops(OperatorNode("n", "", "Attention", 23, attributes, names, ("y",), types, (output,))) == flops


@pytest.mark.parametrize(
    ("shape", "attributes", "flops"),
    [
        ((3, 2, 4, 6), {}, 3 * 144),
        ((3, 4, 12), {"num_heads": 2}, 3 * 144),
        ((3, 4, 12), {"num_heads": 2, "rotary_embedding_dim": 4}, 3 * 96),
    ],
)
def test_rotary_embedding(shape: tuple[int, ...], attributes: dict[str, Any], flops: int) -> None:
    x, table = TensorDescriptor("float32", shape), TensorDescriptor("float32", (9, 3))
    node = OperatorNode("n", "", "RotaryEmbedding", 23, attributes, ("x", "c", "s"), ("y",), (x, table, table), (x,))

    assert node_flops(node) == flops
