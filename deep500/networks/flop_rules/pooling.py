"""Pooling."""

from __future__ import annotations

import math

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_size, output_size
from deep500.networks.operator_node import OperatorNode
from deep500.networks.window import read_window

__all__: list[str] = []


@flop_rules.register("MaxPool", since=1)
@flop_rules.register("AveragePool", since=1)
def pool(node: OperatorNode) -> int:
    """``k1 k2 ...`` for every output element: comparisons, or additions and one division."""
    return output_size(node) * math.prod(read_window(node).kernel)


@flop_rules.register("GlobalMaxPool", since=1)
@flop_rules.register("GlobalAveragePool", since=1)
def global_pool(node: OperatorNode) -> int:
    """One for every input element."""
    return input_size(node)
