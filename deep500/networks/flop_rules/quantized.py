"""Quantisation; what is done in whole numbers takes no floating-point operations."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_size, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@flop_rules.register("QuantizeLinear", since=10)
def quantize(node: OperatorNode) -> int:
    """Two an element: division and rounding."""
    return 2 * input_size(node)


@flop_rules.register("DequantizeLinear", since=10)
def dequantize(node: OperatorNode) -> int:
    """One an element: the product with the scale."""
    return output_size(node)


@flop_rules.register("DynamicQuantizeLinear", since=11)
def dynamic_quantize(node: OperatorNode) -> int:
    """Four an element: minimum, maximum, division, rounding."""
    return 4 * input_size(node)


@flop_rules.register("QLinearConv", since=10)
@flop_rules.register("QLinearMatMul", since=10)
def requantize(node: OperatorNode) -> int:
    """Two an output element: the sum of products is of whole numbers, its scale and rounding are not."""
    return 2 * output_size(node)


@flop_rules.register("ConvInteger", since=10)
@flop_rules.register("MatMulInteger", since=10)
def whole_numbers(node: OperatorNode) -> int:
    """Nothing: products and sums are of whole numbers."""
    return 0
