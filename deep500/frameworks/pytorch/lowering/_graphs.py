"""Graphs that nodes hold: modules of their own, called with what they read of the tensors around the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.frameworks.pytorch._dtypes import holding_dtype
from deep500.frameworks.pytorch.translation import translate_subprogram
from deep500.networks.operator_node import OperatorNode, Subprogram

__all__ = ["GraphHolder", "HeldGraph", "stacked", "unstacked"]


class HeldGraph(torch.nn.Module):
    """A graph that a node holds, called with its own inputs and all that the node captures, by name.

    Attributes:
        output_types: What is known of its outputs, ``None`` where that is nothing.
    """

    def __init__(self, program: Subprogram) -> None:
        """Translate the graph."""
        super().__init__()
        self.module = translate_subprogram(program)
        self.captured = program.captured
        types = {name: kind for node in program.nodes for name, kind in zip(node.outputs, node.output_types)}
        self.output_types: list[TensorDescriptor | None] = [types.get(name) for name in program.outputs]

    def forward(self, inputs: Sequence[Any], captured: Mapping[str, Any]) -> tuple[Any, ...]:
        """Run the graph."""
        results: tuple[Any, ...] = self.module(*inputs, *(captured[name] for name in self.captured))
        return results


class GraphHolder(torch.nn.Module):
    """A node that holds graphs."""

    place: torch.Tensor

    def __init__(self, node: OperatorNode) -> None:
        """Remember what the node captures."""
        super().__init__()
        self.names = node.captured
        # Moves with the module, and so tells where tensors are to be made.
        self.register_buffer("place", torch.empty(0), persistent=False)

    def _captured(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.names, values, strict=True))


def unstacked(x: Any, axis: int) -> list[Any]:
    """Return the entries of an axis, without the axis; of texts, too, which are arrays."""
    return list(np.moveaxis(x, axis, 0)) if isinstance(x, np.ndarray) else list(x.unbind(axis))


def stacked(values: Sequence[Any], kind: TensorDescriptor | None, axis: int, device: torch.device) -> Any:
    """Return tensors, or arrays of texts, as one along a new axis.

    Args:
        values: The tensors.
        kind: What is known of one of them: of none, an empty tensor is made, whose unknown sizes are 0.
        axis: The place of the new axis.
        device: Where the empty tensor is made.
    """
    if values:
        return np.stack(values, axis) if isinstance(values[0], np.ndarray) else torch.stack(list(values), axis)
    sizes = [] if kind is None or kind.shape is None else [d if isinstance(d, int) else 0 for d in kind.shape]
    sizes.insert(axis + len(sizes) + 1 if axis < 0 else axis, 0)
    if kind is not None and kind.dtype == STRING:
        return np.empty(sizes, object)
    return torch.empty(sizes, dtype=torch.float32 if kind is None else holding_dtype(kind.dtype), device=device)
