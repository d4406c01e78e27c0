"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

import torch

from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


def _reduce(function: Callable[..., torch.Tensor], node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Reduce over the axes that the second input names; over all of them when it is absent or empty."""
    keepdims = bool(node.attributes.get("keepdims", 1))
    axes = node.constant(1)
    if axes is None or axes.size == 0:
        if node.attributes.get("noop_with_empty_axes", 0):
            return torch.clone(x)
        names = list(range(node.rank()))
    else:
        names = [int(axis) for axis in axes]
    return function(x, names, keepdim=keepdims) if names else torch.clone(x)


@lowerings.register("ReduceMean", since=18)
def reduce_mean(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Mean over axes; that of integers is truncated."""
    descriptor = node.input_types[0]
    if descriptor is None or descriptor.numpy_dtype.kind not in "iu":
        return _reduce(torch.mean, node, x)
    total = _reduce(torch.sum, node, x)
    count = _reduce(torch.sum, node, torch.ones_like(x))
    return torch.div(total, count, rounding_mode="trunc").type_as(x)


@lowerings.register("ReduceSum", since=13)
def reduce_sum(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Sum over axes, in the dtype of the input."""
    descriptor = node.input_types[0]
    total = _reduce(torch.sum, node, x)
    # PyTorch sums small integers in int64; ONNX keeps the dtype.
    return total.type_as(x) if descriptor is not None and descriptor.numpy_dtype.kind in "iu" else total
