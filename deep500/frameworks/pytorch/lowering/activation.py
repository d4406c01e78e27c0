"""Activations."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Relu", since=6)
def relu(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``max(x, 0)``."""
    return torch.relu(x)


@lowerings.register("LeakyRelu", since=6)
def leaky_relu(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x`` where it is positive, ``alpha x`` elsewhere."""
    return F.leaky_relu(x, node.attributes.get("alpha", 0.01))


@lowerings.register("Sigmoid", since=6)
def sigmoid(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``1 / (1 + exp(-x))``."""
    return torch.sigmoid(x)


@lowerings.register("Tanh", since=6)
def tanh(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Hyperbolic tangent."""
    return torch.tanh(x)


@lowerings.register("Softmax", since=13)
def softmax(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Exponentials along an axis, divided by their sum."""
    return torch.softmax(x, node.attributes.get("axis", -1))


@lowerings.register("LogSoftmax", since=13)
def log_softmax(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Logarithm of :func:`softmax`."""
    return torch.log_softmax(x, node.attributes.get("axis", -1))
