"""Matrix products."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import has_input, input_shape, input_size, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@flop_rules.register("Gemm", since=1)
def gemm(node: OperatorNode) -> int:
    """``2 M N K``; ``M N`` for adding C; ``M N`` for an alpha and the size of C for a beta other than 1."""
    summed = input_shape(node, 0)[0 if node.attributes.get("transA", 0) else 1]
    count = 2 * summed * output_size(node)
    if node.attributes.get("alpha", 1.0) != 1.0:
        count += output_size(node)
    if has_input(node, 2):
        count += output_size(node)
        if node.attributes.get("beta", 1.0) != 1.0:
            count += input_size(node, 2)
    return count


@flop_rules.register("MatMul", since=1)
def matmul(node: OperatorNode) -> int:
    """``2 K`` for every element of the result, over all batches."""
    return 2 * input_shape(node, 0)[-1] * output_size(node)
