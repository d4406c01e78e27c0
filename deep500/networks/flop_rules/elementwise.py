"""Operators on every element by itself, with broadcasting."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


def elementwise(node: OperatorNode) -> int:
    """One for every output element."""
    return output_size(node)


for _name in (
    *("Abs", "Add", "And", "Ceil", "Celu", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu"),
    *("Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "LeakyRelu", "Less", "LessOrEqual", "Log", "Mish"),
    *("Mod", "Mul", "Neg", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin"),
    *("Softplus", "Softsign", "Sqrt", "Sub", "Swish", "Tan", "Tanh", "ThresholdedRelu"),
):
    flop_rules.register(_name, since=1)(elementwise)


@flop_rules.register("Sum", since=1)
@flop_rules.register("Max", since=1)
@flop_rules.register("Min", since=1)
def fold(node: OperatorNode) -> int:
    """One less than the number of inputs, for every output element."""
    return (len(node.inputs) - 1) * output_size(node)


@flop_rules.register("Mean", since=1)
def mean(node: OperatorNode) -> int:
    """The number of inputs (additions and one division), for every output element."""
    return len(node.inputs) * output_size(node)
