"""A network as a table that people read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from deep500.core.errors import InvalidNetworkError
from deep500.core.texts import escaped
from deep500.networks.flops import FlopCount, count_flops, node_flops
from deep500.networks.operator_node import OperatorNode, describe_type, held_graphs, read_node
from deep500.networks.plain_table import plain_table
from deep500.networks.tensor_roles import TensorRole, initializer_role

if TYPE_CHECKING:
    from deep500.networks.network import Network

__all__ = ["network_summary"]

_TITLES = ("Node", "Operator", "Output", "Parameters", "FLOPs")

#: What is not known.
_UNKNOWN = "?"

#: How a mode is called.
_MODES = {"train": "training mode", "eval": "evaluation mode", "declared": "the mode that each node declares"}

_Row = tuple[str, str, str, str, str]


def network_summary(network: Network, batch_size: int = 1, sizes: Mapping[str, int] | None = None) -> str:
    """Return a table of the nodes, and totals, as plain text.

    A parameter that several nodes share is counted for the first. ``?`` stands for what is not known: a shape, or
    the operations of an operator without a rule, or with a size that is symbolic. The nodes of branches and loop bodies
    are indented below the node that holds them; their operations are those of one execution, and are not in the total,
    for how often they run is known only in a run.

    Args:
        network: The network.
        batch_size: Number of samples for which operations are counted; see
            :func:`deep500.networks.flops.count_flops`.
        sizes: Further symbolic sizes by name, for which operations are counted.

    Raises:
        InvalidInputError: The batch size or a size is not accepted.
        UnknownNameError: No input has a size of a name that was given.
    """
    count = count_flops(network, batch_size, sizes=sizes, partial=True)
    lines = [f"Network {network.name!r} in {_MODES[network.mode]}"]
    lines += _tensors("Inputs", network.inputs)
    lines += _tensors("Outputs", network.outputs)
    lines += _tensors("Losses", network.losses)
    table = plain_table(_TITLES, _rows(network, count), right=_TITLES[3:])
    return "\n".join([*lines, "", *table, "", *_totals(network, count)])


def _tensors(title: str, descriptors: Mapping[str, Any]) -> list[str]:
    described = [f"{escaped(f'{name}: {_UNKNOWN if d is None else d}')}" for name, d in descriptors.items()]
    return [f"{title}: {', '.join(described)}"] if described else []


def _rows(network: Network, count: FlopCount) -> Iterator[_Row]:
    parameters = network.parameters
    imports = network.model.graph.opset_imports
    seen: set[str] = set()
    for node, counted, flops in zip(network.model.graph, count.nodes, count.flops):
        names = dict.fromkeys([*counted.inputs, *counted.captured])
        read = [name for name in names if name in parameters and name not in seen]
        seen.update(read)
        scalars = sum(parameters[name].element_count or 0 for name in read)
        yield _row(node, counted.name, scalars, flops, depth=0)
        yield from _nested(node, counted.source or node, imports, depth=1)


def _nested(node: ir.Node, bound: ir.Node, imports: Mapping[str, int], depth: int) -> Iterator[_Row]:
    """Yield the rows of the graphs that a node holds, each below a row with its name.

    Args:
        node: The node.
        bound: The same node, with numbers in the place of symbolic sizes.
        imports: The opset versions of the network, by domain.
        depth: How far the rows are indented.
    """
    for (name, graph), (_, counted) in zip(held_graphs(node), held_graphs(bound)):
        inputs = ", ".join(f"{value.name}: {_described(value)}" for value in graph.inputs)
        yield f"{'  ' * depth}{escaped(name)}({escaped(inputs)})", "", "", "", ""
        for inner, inner_bound in zip(graph, counted):
            stored = [v for v in dict.fromkeys(inner.inputs) if v is not None and v.name in graph.initializers]
            trained = [v.shape for v in stored if initializer_role(v) is TensorRole.PARAMETER and v.shape is not None]
            read = read_node(inner_bound, imports)
            yield _row(inner, read.name, sum(map(_element_count, trained)), _known_flops(read), depth + 1)
            yield from _nested(inner, inner_bound, imports, depth + 2)


def _known_flops(node: OperatorNode) -> int | None:
    try:
        return node_flops(node)
    except InvalidNetworkError:
        return None


def _element_count(shape: ir.Shape) -> int:
    count = 1
    for size in shape:
        count *= size if isinstance(size, int) else 0
    return count


def _row(node: ir.Node, name: str, parameters: int, flops: int | None, depth: int) -> _Row:
    return (
        "  " * depth + escaped(" ".join(name.split())),
        escaped(f"{node.domain}::{node.op_type}" if node.domain else node.op_type),
        ", ".join(_described(value) for value in node.outputs if value.name),
        f"{parameters:,}",
        _UNKNOWN if flops is None else f"{flops:,}",
    )


def _described(value: ir.Value) -> str:
    descriptor = describe_type(value.type, value.shape)
    return _UNKNOWN if descriptor is None else escaped(str(descriptor))


def _totals(network: Network, count: FlopCount) -> Iterator[str]:
    yield f"Parameters: {network.parameter_count:,} ({network.parameter_size_bytes:,} bytes)"
    if network.states:
        scalars = sum(d.element_count or 0 for d in network.states.values())
        size_bytes = sum(d.size_bytes or 0 for d in network.states.values())
        yield f"States: {scalars:,} ({size_bytes:,} bytes)"
    samples = "1 sample" if count.batch_size == 1 else f"{count.batch_size:,} samples"
    yield f"FLOPs of one inference of {samples}: {count.total:,}"
    if count.uncounted:
        counts = {escaped(name): _nodes(number) for name, number in count.uncounted.items()}
        yield f"Not counted, for want of a rule: {', '.join(f'{name} ({text})' for name, text in counts.items())}"
    if count.obstacles:
        first = next(iter(count.obstacles.values()))
        yield f"Not counted, for a size that is not known: {_nodes(len(count.obstacles))}. {first}"


def _nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"
