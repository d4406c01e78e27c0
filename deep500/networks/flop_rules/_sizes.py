"""Sizes of a node's tensors."""

from __future__ import annotations

import math

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.operator_node import OperatorNode

__all__ = ["has_input", "input_shape", "input_size", "output_shape", "output_size"]


def has_input(node: OperatorNode, index: int) -> bool:
    """Whether an optional input is there."""
    return index < len(node.inputs) and bool(node.inputs[index])


def input_shape(node: OperatorNode, index: int = 0) -> tuple[int, ...]:
    """Return the shape of an input; see :func:`_known_shape`."""
    return _known_shape(node, "input", index, node.inputs, node.input_types)


def output_shape(node: OperatorNode, index: int = 0) -> tuple[int, ...]:
    """Return the shape of an output; see :func:`_known_shape`."""
    return _known_shape(node, "output", index, node.outputs, node.output_types)


def input_size(node: OperatorNode, index: int = 0) -> int:
    """Return the number of elements of an input."""
    return math.prod(input_shape(node, index))


def output_size(node: OperatorNode, index: int = 0) -> int:
    """Return the number of elements of an output."""
    return math.prod(output_shape(node, index))


def _known_shape(
    node: OperatorNode, kind: str, index: int, names: tuple[str, ...], types: tuple[TensorDescriptor | None, ...]
) -> tuple[int, ...]:
    """Return a shape of which every size is known.

    Raises:
        InvalidNetworkError: A size is not known; the message names the symbol and the tensor.
    """
    descriptor = types[index] if index < len(types) else None
    if descriptor is None or descriptor.shape is None:
        name = names[index] if index < len(names) else ""
        raise InvalidNetworkError(f"The shape of {kind} {index} ({name!r}) of {node.label} is not known.")
    sizes = []
    for size in descriptor.shape:
        if not isinstance(size, int):
            what = f"the symbolic size {size!r}" if size else "a size without a name"
            raise InvalidNetworkError(
                f"The floating-point operations of {node.label} depend on {what} of its {kind} {names[index]!r}, "
                f"{descriptor}. Only the batch, the first dimension of the network's inputs, may be symbolic; "
                f"declare the other sizes in the network's inputs."
            )
        sizes.append(size)
    return tuple(sizes)
