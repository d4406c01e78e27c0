"""What ONNX' operator schemas say of element types."""

from __future__ import annotations

from collections.abc import Sequence

import onnx.defs
import onnx_ir as ir

__all__ = ["allows_dtype", "formal_parameter", "node_schema", "type_letter"]


def node_schema(node: ir.Node) -> onnx.defs.OpSchema:
    """Return the schema of a node, in the version of its graph."""
    version = node.version
    if version is None and node.graph is not None:
        version = node.graph.opset_imports.get(node.domain)
    return onnx.defs.get_schema(node.op_type, version or onnx.defs.onnx_opset_version(), node.domain)


def formal_parameter(
    parameters: Sequence[onnx.defs.OpSchema.FormalParameter], index: int
) -> onnx.defs.OpSchema.FormalParameter:
    """Return what a schema says of an input or output by its number."""
    listed = list(parameters)
    return listed[min(index, len(listed) - 1)]  # the last may stand for any number


def type_letter(node: ir.Node, side: str, index: int) -> str:
    """Return the letter that stands for the type of an input or output.

    Args:
        node: The node.
        side: ``"inputs"`` or ``"outputs"``.
        index: Its number.
    """
    return formal_parameter(getattr(node_schema(node), side), index).type_str


def allows_dtype(node: ir.Node, side: str, index: int, dtype: ir.DataType) -> bool:
    """Whether ONNX defines an operator for a dtype at a place; see :func:`type_letter`."""
    letter = type_letter(node, side, index)
    constraints = node_schema(node).type_constraints
    allowed = {c.type_param_str: c.allowed_type_strs for c in constraints}.get(letter, [letter])
    text = {"FLOAT": "float", "DOUBLE": "double"}.get(dtype.name, dtype.name.lower())
    return f"tensor({text})" in allowed
