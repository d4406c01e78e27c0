"""Updates of parameters: the optimizers that ONNX has as operators."""

from __future__ import annotations

from collections.abc import Callable

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

_DOMAIN = "ai.onnx.preview.training"


def _update(tensors: int, operations: int) -> Callable[[OperatorNode], int]:
    """Return the rule of an update that reads so many tensors a parameter, after rate and count of updates."""

    def rule(node: OperatorNode) -> int:
        count = (len(node.inputs) - 2) // tensors
        return operations * sum(input_size(node, 2 + index) for index in range(count))

    rule.__doc__ = f"{operations} for every element of a parameter."
    return rule


#: Decay of weights 2; square and its sum 2; root, small number, division, product with the rate, difference 5.
flop_rules.register("Adagrad", since=1, domain=_DOMAIN)(_update(3, 9))
#: Decay of weights 2; both moments 7; root, small number, division, product with the rate, difference 5.
flop_rules.register("Adam", since=1, domain=_DOMAIN)(_update(4, 14))
#: Decay of weights 2; momentum 3; product with the rate and difference 2.
flop_rules.register("Momentum", since=1, domain=_DOMAIN)(_update(3, 7))
