"""Trigonometric and other elementary functions, and activations of several steps, on every element by itself."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_size, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


def one_each(node: OperatorNode) -> int:
    """One for every output element."""
    return output_size(node)


for _name in (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Not", "Or", "Xor", "Shrink", "BitShift"),
    *("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"),
):
    flop_rules.register(_name, since=1)(one_each)


@flop_rules.register("SwiGLU", since=1)
def swiglu(node: OperatorNode) -> int:
    """Four for every output element: sigmoid, two products, and the scale in the exponent."""
    return 4 * output_size(node)


@flop_rules.register("Hardmax", since=1)
def hardmax(node: OperatorNode) -> int:
    """One comparison for every element."""
    return input_size(node)


@flop_rules.register("CumProd", since=1)
def cumulative_product(node: OperatorNode) -> int:
    """One for every input element."""
    return input_size(node)
