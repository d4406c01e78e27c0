"""Shapes: the same elements in another arrangement."""

from __future__ import annotations

import torch

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch._dtypes import torch_dtype
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Identity", since=1)
def identity(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """The input itself."""
    return x


@lowerings.register("Flatten", since=9)
def flatten(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``[D0, ..., Dn]`` to ``[D0 ... D(axis-1), D(axis) ... Dn]``."""
    rank = node.rank()
    axis = node.attributes.get("axis", 1)
    axis = axis + rank if axis < 0 else axis
    if axis == 0:
        return torch.reshape(x, (1, -1)) if rank else torch.reshape(x, (1, 1))
    if axis == 1 and rank > 1:
        return torch.flatten(x, 1)
    if axis == rank:
        return torch.reshape(x, (-1, 1))
    return torch.flatten(torch.flatten(x, axis), 0, axis - 1)


@lowerings.register("Reshape", since=5)
def reshape(node: OperatorNode, x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    """The elements in a given shape: 0 keeps a size (unless ``allowzero``), -1 takes what is left."""
    wanted = node.constant(1)
    if wanted is None:
        raise InvalidNetworkError(f"{node.label} has no shape.")
    keep = not node.attributes.get("allowzero", 0)
    sizes = [x.size(i) if size == 0 and keep else int(size) for i, size in enumerate(wanted)]
    return torch.reshape(x, tuple(sizes))


@lowerings.register("Transpose", since=1)
def transpose(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Dimensions in another order, reversed by default."""
    order = node.attributes.get("perm") or list(reversed(range(node.rank())))
    return torch.permute(x, tuple(order))


@lowerings.register("Concat", since=4)
def concat(node: OperatorNode, *tensors: torch.Tensor) -> torch.Tensor:
    """Tensors one after the other along an axis."""
    return torch.cat(list(tensors), node.attributes["axis"])


@lowerings.register("Squeeze", since=13)
def squeeze(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Without dimensions of size 1: the named ones, or all."""
    names = node.constant(1)
    if names is None:
        return torch.squeeze(x)
    rank = node.rank()
    dropped = {int(axis) % rank for axis in names} if rank else set()
    # PyTorch's squeeze would keep an axis that is not 1 without a word; a reshape fails.
    return torch.reshape(x, tuple(x.size(axis) for axis in range(rank) if axis not in dropped))


@lowerings.register("Unsqueeze", since=13)
def unsqueeze(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor) -> torch.Tensor:
    """With dimensions of size 1 where the axes of the output say."""
    names = node.constant(1)
    if names is None:
        raise InvalidNetworkError(f"{node.label} has no axes.")
    rank = node.rank() + len(names)
    for axis in sorted(int(a) % rank for a in names):
        x = torch.unsqueeze(x, axis)
    return x


@lowerings.register("Cast", since=9)
def cast(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """The elements in another dtype."""
    descriptor = node.output_types[0]
    if descriptor is None:
        raise InvalidNetworkError(f"The dtype that {node.label} casts to cannot be held.")
    return x.to(torch_dtype(descriptor.dtype))
