"""Taking lowerings from ONNX' own reference implementation: for operators that have nothing to differentiate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.host_operator import NodeEvaluator
from deep500.networks.operator_node import OperatorNode
from deep500.operators.library._tensors import is_float
from deep500.operators.operator import Operator, OptionalArray

__all__ = ["OnnxReference", "take_onnx"]


class OnnxReference(Operator):
    """A node that is evaluated by ``onnx.reference``.

    Args:
        node: The node.
        has_gradient: Whether a gradient is wanted of the operator, which ONNX' implementation does not have; else
            it is constant by all its inputs, wherever it has a derivative.
    """

    def __init__(self, node: OperatorNode, *, has_gradient: bool = False) -> None:
        self._label = node.label
        self._has_gradient = has_gradient
        self._evaluate = NodeEvaluator(node)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        """Evaluate the node."""
        return self._evaluate(inputs)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Return no gradients.

        Raises:
            UnsupportedOperatorError: There is one, by a float, that ONNX' implementation does not have.
        """
        if self._has_gradient and any(x is not None and is_float(np.asarray(x).dtype) for x in fwd_inputs):
            raise UnsupportedOperatorError(f"The NumPy reference has no gradient of {self._label}.")
        return (None,) * len(fwd_inputs)


def take_onnx(op_type: str, *, since: int = 1, domain: str = "", has_gradient: bool = False) -> None:
    """Register ONNX' reference implementation as the lowering of an operator.

    Args:
        op_type: The operator's ONNX name.
        since: First opset version whose form it has.
        domain: The operator's domain.
        has_gradient: Whether the operator has derivatives, other than 0, by a float; differentiating it is refused
            then.
    """

    @lowerings.register(op_type, since=since, domain=domain)
    def lower(node: OperatorNode) -> Operator:
        return OnnxReference(node, has_gradient=has_gradient)
