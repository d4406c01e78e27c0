"""Operators that the library does not have: ONNX' own reference implementation runs them, forward only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.host_operator import NodeEvaluator
from deep500.networks.operator_node import OperatorNode
from deep500.operators.operator import Operator, OptionalArray

__all__: list[str] = []

#: Domains of ONNX that its reference implements.
_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")


class OnnxReference(Operator):
    """A node that is evaluated by ``onnx.reference``.

    Args:
        node: The node.
    """

    def __init__(self, node: OperatorNode) -> None:
        self._label = node.label
        self._evaluate = NodeEvaluator(node)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        """Evaluate the node."""
        return self._evaluate(inputs)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Refuse: the reference implementation has no gradients."""
        raise UnsupportedOperatorError(f"The NumPy reference has no gradient of {self._label}.")


def _lower(node: OperatorNode) -> Operator:
    return OnnxReference(node)


for _domain in _DOMAINS:
    lowerings.register("*", since=1, domain=_domain)(_lower)
