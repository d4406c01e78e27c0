"""Taking lowerings from the library of NumPy operators."""

from __future__ import annotations

from deep500.core.registry import Registry
from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.operator_node import OperatorNode
from deep500.operators.operator import Operator

__all__ = ["LIBRARY", "take"]

#: The NumPy operators, one file each.
LIBRARY = Registry("operator", "deep500.operators.library")


def take(op_type: str, file: str, *, since: int) -> None:
    """Register the library's operator of a file as the lowering of an ONNX operator.

    Args:
        op_type: The operator's ONNX name.
        file: Name of its file in ``deep500/operators/library``.
        since: First opset version whose form the library's operator has.
    """

    @lowerings.register(op_type, since=since)
    def lower(node: OperatorNode) -> Operator:
        operator = LIBRARY.get(file)(**node.attributes)
        assert isinstance(operator, Operator)
        return operator
