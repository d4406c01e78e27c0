"""The part of a network that one run needs: which nodes, reading which tensors, in the network's mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from deep500.core.errors import InvalidInputError, InvalidNetworkError, UnsupportedOperatorError
from deep500.core.value_descriptor import ValueDescriptor
from deep500.networks._tensor_values import tensor_value
from deep500.networks.operator_node import (
    OperatorNode,
    Subprogram,
    captured_values,
    describe_type,
    held_graphs,
    read_node,
)
from deep500.networks.tensor_roles import TensorRole, initializer_role, is_loss
from deep500.networks.training_form import Mode, node_in_mode

__all__ = ["Program", "build_program"]


@dataclass(frozen=True, eq=False)
class Program:
    """What an adapter translates.

    Attributes:
        nodes: The nodes in an order in which they can run.
        inputs: Names of the tensors that are fed, in the network's order.
        input_types: Their dtypes and shapes; of sequences and optionals, those of the elements.
        parameters: Names of the trained tensors that are read.
        states: Names of the states that are read.
        constants: Names of the constants that are read.
        outputs: Names of the network's outputs that are computed, in the network's order.
        losses: Those of the outputs that are losses.
        state_updates: Name of the tensor that holds the next value, by the name of the state.
        mode: The mode that the nodes are in.
    """

    nodes: tuple[OperatorNode, ...]
    inputs: tuple[str, ...]
    input_types: tuple[ValueDescriptor, ...]
    parameters: tuple[str, ...]
    states: tuple[str, ...]
    constants: tuple[str, ...]
    outputs: tuple[str, ...]
    losses: tuple[str, ...]
    state_updates: Mapping[str, str]
    mode: Mode


def build_program(graph: ir.Graph, fed: frozenset[str], mode: Mode) -> Program:
    """Select what can be computed from the tensors that are fed.

    An output that is a loss is left out when something that it needs (the label) is not fed; any other output must be
    computable.

    Args:
        graph: The network's graph.
        fed: Names of the inputs that are fed.
        mode: The network's mode.

    Raises:
        InvalidInputError: An input that an output needs is not fed.
        UnsupportedOperatorError: A branch or loop body has statistics that training would update.
    """
    outputs, needed = _computable_outputs(graph, fed)
    used = frozenset(v.name or "" for node in graph for v in (*node.inputs, *captured_values(node)) if v is not None)
    used |= {v.name or "" for v in graph.outputs}
    nodes: list[OperatorNode] = []
    state_updates: dict[str, str] = {}
    for node in graph:
        if node not in needed:
            continue
        translated, updates = node_in_mode(_read(node, graph.opset_imports, mode), mode, used)
        nodes.append(translated)
        # Statistics that are fed or computed instead of stored are not the network's to update.
        state_updates.update((state, value) for state, value in updates.items() if state in graph.initializers)
    read = [name for node in nodes for name in (*node.inputs, *node.captured)]
    read_names = dict.fromkeys([*read, *(v.name or "" for v in outputs)])
    stored = [name for name in read_names if name in graph.initializers and name not in fed]
    roles = {name: initializer_role(graph.initializers[name]) for name in stored}
    return Program(
        nodes=tuple(nodes),
        inputs=tuple(v.name or "" for v in graph.inputs if v.name in fed),
        input_types=tuple(_input_type(v) for v in graph.inputs if v.name in fed),
        parameters=tuple(n for n, role in roles.items() if role is TensorRole.PARAMETER),
        states=tuple(n for n, role in roles.items() if role is TensorRole.STATE),
        constants=tuple(n for n, role in roles.items() if role is TensorRole.CONSTANT),
        outputs=tuple(v.name or "" for v in outputs),
        losses=tuple(v.name or "" for v in outputs if is_loss(v)),
        state_updates=state_updates,
        mode=mode,
    )


def _read(node: ir.Node, imports: Mapping[str, int], mode: Mode) -> OperatorNode:
    """Turn a node, and the graphs that it holds, into what adapters translate."""
    graphs = {name: _subprogram(graph, imports, mode) for name, graph in held_graphs(node)}
    return read_node(node, imports, graphs)


def _subprogram(graph: ir.Graph, imports: Mapping[str, int], mode: Mode) -> Subprogram:
    used = frozenset(v.name or "" for node in graph for v in node.inputs if v is not None)
    nodes = []
    for node in graph:
        read, updates = node_in_mode(_read(node, imports, mode), mode, used)
        if updates:
            raise UnsupportedOperatorError(
                f"{read.label} is in a branch or a loop body, where training cannot update its statistics. Use the "
                f"network in evaluation mode."
            )
        nodes.append(read)
    inputs = tuple(v.name or "" for v in graph.inputs)
    stored = {
        name: tensor_value(value.const_value)
        for name, value in graph.initializers.items()
        if value.const_value is not None and name not in inputs
    }
    outputs = tuple(v.name or "" for v in graph.outputs)
    own = {*inputs, *stored, *(name for node in nodes for name in node.outputs)}
    read_names = dict.fromkeys([*(n for node in nodes for n in (*node.inputs, *node.captured)), *outputs])
    return Subprogram(tuple(nodes), inputs, outputs, stored, tuple(n for n in read_names if n and n not in own))


def _input_type(value: ir.Value) -> ValueDescriptor:
    descriptor = describe_type(value.type, value.shape)
    if descriptor is None:
        raise InvalidNetworkError(f"Input {value.name!r} has no element type that can be fed.")
    return descriptor


def _computable_outputs(graph: ir.Graph, fed: frozenset[str]) -> tuple[list[ir.Value], set[ir.Node]]:
    outputs: list[ir.Value] = []
    needed: set[ir.Node] = set()
    for output in graph.outputs:
        nodes, leaves = _ancestors(output)
        missing = sorted(
            value.name or ""
            for value in leaves
            if value.name not in fed and (value.const_value is None or value.name not in graph.initializers)
        )
        if missing and is_loss(output):
            continue
        if missing:
            accepted = ", ".join(repr(v.name) for v in graph.inputs)
            raise InvalidInputError(
                f"Input {', '.join(map(repr, missing))} was not fed, and output {output.name!r} needs it. "
                f"Fed: {', '.join(map(repr, sorted(fed))) or 'nothing'}; the network's inputs: {accepted}."
            )
        outputs.append(output)
        needed |= nodes
    return outputs, needed


def _ancestors(output: ir.Value) -> tuple[set[ir.Node], set[ir.Value]]:
    """Return the nodes that a value depends on, and the values without a producer among its ancestors."""
    nodes: set[ir.Node] = set()
    leaves: set[ir.Value] = set()
    pending = [output]
    while pending:
        value = pending.pop()
        producer = value.producer()
        if producer is None:
            leaves.add(value)
        elif producer not in nodes:
            nodes.add(producer)
            pending.extend(v for v in producer.inputs if v is not None)
            pending.extend(captured_values(producer))
    return nodes, leaves
