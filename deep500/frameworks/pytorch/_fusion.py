"""Calls of a recorded graph that PyTorch has one kernel for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import fx

__all__ = ["fuse_linear"]


def fuse_linear(graph: fx.Graph, stored: Mapping[str, Any]) -> None:
    """Make one call of the product with a transposed stored matrix, and of the bias that is added to it.

    That is how linear layers are exported: ``x W^T + b`` as Transpose, MatMul and Add.

    Args:
        graph: The graph; it is changed.
        stored: The tensors that it reads, by the name of their attribute.
    """
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not torch.matmul or len(node.args) != 2:
            continue
        weight = _transposed(node.args[1], stored)
        if weight is None or not isinstance(node.args[0], fx.Node):
            continue
        bias, total = _added(node, stored[str(weight.target)].shape[0], stored)
        with graph.inserting_before(total):
            fused = graph.call_function(F.linear, (node.args[0], weight, *([] if bias is None else [bias])))
        total.replace_all_uses_with(fused)
        for done in dict.fromkeys((total, node, node.args[1])):
            if not done.users:
                graph.erase_node(done)


def _transposed(node: Any, stored: Mapping[str, Any]) -> fx.Node | None:
    """Return the stored matrix of which a node is the transpose."""
    if not isinstance(node, fx.Node) or node.target is not torch.permute or node.args[1:] not in (((1, 0),), ([1, 0],)):
        return None
    source = node.args[0]
    return source if isinstance(source, fx.Node) and _rank(source, stored) == 2 else None


def _added(product: fx.Node, size: int, stored: Mapping[str, Any]) -> tuple[fx.Node | None, fx.Node]:
    """Return the stored bias that is added to a product, if there is one, and the node of the whole."""
    if len(product.users) != 1:
        return None, product
    (user,) = product.users
    if user.target is not torch.add or len(user.args) != 2 or user.kwargs:
        return None, product
    (other,) = [argument for argument in user.args if argument is not product] or [None]
    if isinstance(other, fx.Node) and _rank(other, stored) == 1 and stored[str(other.target)].shape[0] == size:
        return other, user
    return None, product


def _rank(node: fx.Node, stored: Mapping[str, Any]) -> int | None:
    value = stored.get(str(node.target)) if node.op == "get_attr" else None
    return value.dim() if isinstance(value, torch.Tensor) else None
