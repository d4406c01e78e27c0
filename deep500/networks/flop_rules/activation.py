"""Softmax and its relatives."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_shape, input_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@flop_rules.register("Softmax", since=1)
def softmax(node: OperatorNode) -> int:
    """Five for every element: maximum, difference, exponential, sum, division."""
    return 5 * input_size(node)


@flop_rules.register("LogSoftmax", since=1)
def log_softmax(node: OperatorNode) -> int:
    """Five for every element (maximum, difference, exponential, sum, difference), and a logarithm for every row."""
    axis: int = node.attributes.get("axis", -1 if node.version >= 13 else 1)
    return 5 * input_size(node) + input_size(node) // max(input_shape(node)[axis], 1)
