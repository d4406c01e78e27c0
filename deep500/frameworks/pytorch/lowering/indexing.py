"""Elements by index."""

from __future__ import annotations

from typing import Any

import torch

from deep500.frameworks.pytorch._recording import spread
from deep500.frameworks.pytorch._sizes import integers_of
from deep500.frameworks.pytorch.lowering import _indices as indices
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._texts import texts_on_host
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Gather", since=13)
@texts_on_host
def gather(node: OperatorNode, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """``x[..., index, ...]`` on an axis. Source: ONNX Gather-13."""
    axis, constant = node.attributes.get("axis", 0), node.constants.get(1)
    if constant is not None and constant.ndim == 0:
        return indices.select(x, int(constant), axis)
    return indices.gather(x, index, axis)


@lowerings.register("GatherElements", since=13)
@texts_on_host
def gather_elements(node: OperatorNode, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """``y[i, j] = x[index[i, j], j]`` for axis 0. Source: ONNX GatherElements-13."""
    return indices.gather_elements(x, index, node.attributes.get("axis", 0))


@lowerings.register("GatherND", since=13)
@texts_on_host
def gather_nd(node: OperatorNode, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """``y[i] = x[index[i, 0], index[i, 1], ...]``. Source: ONNX GatherND-13."""
    return indices.gather_nd(x, index, node.attributes.get("batch_dims", 0))


@lowerings.register("Scatter", since=9)
@lowerings.register("ScatterElements", since=18)
@texts_on_host
def scatter_elements(node: OperatorNode, x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    """``y[index[i, j], j] = updates[i, j]`` for axis 0, x elsewhere. Source: ONNX ScatterElements-18, Scatter-11."""
    reduction = node.attributes.get("reduction", "none")
    return indices.scatter_elements(x, index, updates, node.attributes.get("axis", 0), reduction)


@lowerings.register("ScatterND", since=18)
@texts_on_host
def scatter_nd(node: OperatorNode, x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    """``y[index[i, 0], index[i, 1], ...] = updates[i]``, x elsewhere. Source: ONNX ScatterND-18."""
    return indices.scatter_nd(x, index, updates, node.attributes.get("reduction", "none"))


@lowerings.register("TensorScatter", since=24)
@texts_on_host
def tensor_scatter(
    node: OperatorNode, cache: torch.Tensor, update: torch.Tensor, first: torch.Tensor | None = None
) -> torch.Tensor:
    """A cache with the next steps of sequences written into it. Source: ONNX TensorScatter-24."""
    return indices.tensor_scatter(
        cache, update, first, node.attributes.get("axis", -2), node.attributes.get("mode", "linear")
    )


@lowerings.register("TopK", since=11)
def top_k(node: OperatorNode, x: torch.Tensor, count: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The largest or smallest elements along an axis, in order, and their indices. Source: ONNX TopK-24."""
    number, largest = integers_of(node, 1, count), bool(node.attributes.get("largest", 1))
    return spread(indices.top_k(x, number, node.attributes.get("axis", -1), largest), 2)


@lowerings.register("NonZero", since=13)
@texts_on_host
def nonzero(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """The places of the elements that are not zero, ``[rank, count]``. Source: ONNX NonZero-13."""
    return indices.nonzero(x)


@lowerings.register("OneHot", since=11)
@texts_on_host
def one_hot(node: OperatorNode, index: torch.Tensor, depth: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """``values[1]`` where an index names the place on a new axis, ``values[0]`` elsewhere. Source: ONNX OneHot-28."""
    return indices.one_hot(index, integers_of(node, 1, depth), values, node.attributes.get("axis", -1))


@lowerings.register("Compress", since=11)
@texts_on_host
def compress(node: OperatorNode, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
    """The entries of an axis for which a condition holds. Source: ONNX Compress-28."""
    return indices.compress(x, condition, node.attributes.get("axis"))


@lowerings.register("Unique", since=11)
@texts_on_host
def unique(node: OperatorNode, x: Any) -> tuple[Any, ...]:
    """Every element or part once, with where and how often it occurs. Source: ONNX Unique-28."""
    found = indices.unique(x, node.attributes.get("axis"), bool(node.attributes.get("sorted", 1)))
    return spread(found, len(node.outputs))
