"""Editing graphs: what several transformations do to nodes and stored tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import onnx_ir as ir
from numpy.typing import NDArray

from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = ["add_stored", "drop_unused", "replace_nodes", "tensor_names", "unused_name"]


def tensor_names(graph: ir.Graph) -> set[str]:
    """Return the names of all tensors of a graph."""
    names = {value.name for node in graph.all_nodes() for value in node.outputs}
    names |= {value.name for value in graph.inputs} | set(graph.initializers)
    return {name for name in names if name}


def unused_name(wanted: str, graph: ir.Graph) -> str:
    """Return a name that no tensor of a graph has."""
    taken = tensor_names(graph)
    while wanted in taken:
        wanted += "_"
    return wanted


def add_stored(graph: ir.Graph, name: str, array: NDArray[Any], role: TensorRole) -> ir.Value:
    """Store a tensor in a graph, under a name that is still free."""
    name = unused_name(name, graph)
    tensor = ir.tensor(array, name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
    value.metadata_props[ROLE_KEY] = role.value
    graph.register_initializer(value)
    return value


def replace_nodes(
    graph: ir.Graph,
    after: ir.Node,
    old: Sequence[ir.Node],
    new: Sequence[ir.Node],
    values: Iterable[tuple[ir.Value, ir.Value]],
) -> None:
    """Put nodes in the place of others; each new value takes name, type, metadata and uses of the old one."""
    pairs = list(values)
    for previous, value in pairs:
        value.metadata_props.update(previous.metadata_props)
    ir.convenience.replace_nodes_and_values(
        graph, after, old, new, [previous for previous, _ in pairs], [value for _, value in pairs]
    )


def drop_unused(graph: ir.Graph, candidates: Iterable[str]) -> None:
    """Drop those of the stored tensors that nobody reads any more."""
    for name in candidates:
        value = graph.initializers.get(name)
        if value is not None and not value.uses() and not value.is_graph_output():
            del graph.initializers[name]
