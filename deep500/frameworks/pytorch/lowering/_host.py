"""Operators that run on the host, in NumPy: those of texts, which PyTorch cannot hold, and rare ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from deep500.frameworks.pytorch._arrays import as_texts, to_array, to_tensor
from deep500.frameworks.pytorch._recording import call_each_run, spread
from deep500.networks.host_operator import NodeEvaluator
from deep500.networks.operator_node import OperatorNode

__all__ = ["HostModule", "run_on_host"]


class HostModule(torch.nn.Module):
    """What runs on the host, and returns its results to the device that the network is on."""

    def __init__(self) -> None:
        """Start on the processor."""
        super().__init__()
        # Moves with the module: nothing else tells the device where all inputs are texts.
        self.register_buffer("place", torch.empty(0), persistent=False)

    def returned(self, value: Any) -> Any:
        """Return a NumPy array, or a list of them, as tensors on the device; texts stay arrays of objects."""
        if isinstance(value, (list, tuple)):
            return [self.returned(entry) for entry in value]
        if not isinstance(value, np.ndarray):
            return value
        texts = as_texts(value)
        if texts is not None:
            return texts
        device = self.place.device
        assert isinstance(device, torch.device)
        return to_tensor(value).to(device)


class _EvaluatedNode(HostModule):
    """A node that ONNX' reference implementation evaluates."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__()
        self.evaluator = NodeEvaluator(node)
        self.types = [None if kind is None else kind.dtype for kind in node.input_types]

    def forward(self, *values: Any) -> tuple[Any, ...]:
        types = [*self.types, *[None] * (len(values) - len(self.types))]
        arrays = [_array(value, name) for value, name in zip(values, types)]
        return tuple(self.returned(result) for result in self.evaluator(arrays))


def run_on_host(node: OperatorNode, *values: Any) -> tuple[Any, ...]:
    """Evaluate a node by ONNX' reference implementation whenever the network runs.

    Args:
        node: The node.
        *values: Its inputs, and what it captures: tensors, arrays of texts, lists of these, ``None`` where absent.

    Raises:
        UnsupportedOperatorError: ONNX' reference has no implementation of it.
    """
    return spread(call_each_run(_EvaluatedNode(node), values), len(node.outputs))


def _array(value: Any, name: str | None) -> Any:
    if isinstance(value, (list, tuple)):
        return [_array(entry, name) for entry in value]
    return to_array(value, name) if isinstance(value, torch.Tensor) else value
