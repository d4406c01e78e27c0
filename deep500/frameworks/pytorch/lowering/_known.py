"""What is known of a node's inputs while it is translated."""

from __future__ import annotations

from deep500.core.tensor_descriptor import Dimension
from deep500.networks.operator_node import OperatorNode

__all__ = ["known_dtype", "known_shape", "known_sizes", "same_dtype", "wants"]


def known_shape(node: OperatorNode, index: int) -> tuple[Dimension, ...] | None:
    """Return the (possibly symbolic) shape of an input, ``None`` where not even its rank is known."""
    kind = node.input_types[index] if index < len(node.input_types) else None
    return None if kind is None else kind.shape


def known_sizes(node: OperatorNode, index: int, start: int = 0) -> tuple[int, ...] | None:
    """Return the sizes of an input's axes from one on, ``None`` where one of them is not known."""
    shape = known_shape(node, index)
    if shape is None:
        return None
    sizes = tuple(size for size in shape[start:] if isinstance(size, int))
    return sizes if len(sizes) == len(shape[start:]) else None


def known_dtype(node: OperatorNode, index: int) -> str | None:
    """Return the dtype of an input by NumPy's name, ``None`` where it is absent or not known."""
    kind = node.input_types[index] if index < len(node.input_types) else None
    return None if kind is None else kind.dtype


def same_dtype(node: OperatorNode, *indices: int) -> bool:
    """Whether those of some inputs whose dtype is known have one dtype."""
    return len({known_dtype(node, index) for index in indices} - {None}) < 2


def wants(node: OperatorNode, index: int) -> bool:
    """Whether somebody may use an output."""
    return index < len(node.outputs) and bool(node.outputs[index])
