"""What the element types of a node's tensors ask of a lowering."""

from __future__ import annotations

import onnx_ir as ir

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.networks.operator_node import OperatorNode, describe_type

__all__ = ["input_type", "is_integer", "is_text", "lacks_kernels", "onnx_type", "output_type"]

#: Integers of which PyTorch has tensors, and next to no kernels that compute with them.
_WITHOUT_KERNELS = frozenset({"uint16", "uint32", "uint64"})


def input_type(node: OperatorNode, index: int = 0) -> str | None:
    """Return the element type of an input, ``None`` where it is not known."""
    kind = node.input_types[index] if index < len(node.input_types) else None
    return None if kind is None else kind.dtype


def output_type(node: OperatorNode, index: int = 0) -> str | None:
    """Return the element type of an output, ``None`` where it is not known."""
    kind = node.output_types[index] if index < len(node.output_types) else None
    return None if kind is None else kind.dtype


def onnx_type(code: int) -> str:
    """Return the element type that ONNX gives a number.

    Raises:
        InvalidNetworkError: There is none of the number.
    """
    try:
        kind = describe_type(ir.TensorType(ir.DataType(code)), None)
    except ValueError as error:
        raise InvalidNetworkError(f"ONNX has no element type of number {code}.") from error
    if not isinstance(kind, TensorDescriptor):
        raise InvalidNetworkError(f"ONNX' element type of number {code} is none of a tensor.")
    return kind.dtype


def is_integer(node: OperatorNode, index: int = 0) -> bool:
    """Whether an input is known to hold integers of 8 bits and more."""
    kind = node.input_types[index] if index < len(node.input_types) else None
    return kind is not None and kind.numpy_dtype.kind in "iu"


def is_text(node: OperatorNode, index: int = 0) -> bool:
    """Whether an input is known to hold texts."""
    return input_type(node, index) == STRING


def lacks_kernels(node: OperatorNode, index: int = 0) -> bool:
    """Whether PyTorch may have no kernels for the element type of an input: a wide unsigned one, or one unknown."""
    name = input_type(node, index)
    return name is None or name in _WITHOUT_KERNELS
