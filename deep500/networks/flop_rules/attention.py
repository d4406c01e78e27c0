"""Attention."""

from __future__ import annotations

import math

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import has_input, input_shape, input_size, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

#: Inputs of the mask and of the keys that are kept from before.
_MASK, _PAST = 3, 4

#: Operations of a softmax's element, as the rule of Softmax counts them.
_SOFTMAX = 5


@flop_rules.register("Attention", since=23)
def attention(node: OperatorNode) -> int:
    """``2 d`` a score and ``2 d'`` to weigh the values by it; five for its softmax; scaling of queries and keys.

    One more a score for each of mask and causality, three for a soft cap. Scores that causality masks count as well.
    """
    query, key, value = (input_shape(node, index) for index in range(3))
    heads, shared = _heads(node, query, "q_num_heads"), _heads(node, key, "kv_num_heads")
    past = input_shape(node, _PAST)[-2] if has_input(node, _PAST) else 0
    scores = query[0] * heads * query[-2] * (past + key[-2])
    head = math.prod(query[1:]) // (heads * query[-2])
    value_head = math.prod(value[1:]) // (shared * value[-2])
    bias = has_input(node, _MASK) + bool(node.attributes.get("is_causal", 0))
    cap = 3 if node.attributes.get("softcap", 0.0) else 0
    scaled = input_size(node, 0) + input_size(node, 1) * (past + key[-2]) // key[-2]
    return scores * (2 * head + 2 * value_head + _SOFTMAX + bias + cap) + scaled


def _heads(node: OperatorNode, shape: tuple[int, ...], attribute: str) -> int:
    """Return a number of heads: the second of four dimensions, else an attribute."""
    return shape[1] if len(shape) == 4 else int(node.attributes[attribute])


@flop_rules.register("RotaryEmbedding", since=23)
def rotary_embedding(node: OperatorNode) -> int:
    """Three for every feature that is rotated: two products and a sum."""
    shape = input_shape(node)
    head = shape[-1] if len(shape) == 4 else shape[-1] // int(node.attributes["num_heads"])
    rotated = int(node.attributes.get("rotary_embedding_dim", 0)) or head
    return 3 * output_size(node) * rotated // max(head, 1)
