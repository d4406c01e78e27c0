"""The reverse pass: from the gradients by what nodes compute to the gradients by what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import onnx
import onnx.helper
from numpy.typing import NDArray

from deep500.core.errors import UnsupportedOperatorError
from deep500.networks.differentiation.builder import GraphBuilder, Value
from deep500.networks.differentiation.rule_table import find_rule
from deep500.networks.differentiation.sequences import map_sequence

__all__ = ["ReversedNode", "captured_names", "gradients_by", "held_graphs", "is_differentiable", "replay"]

#: Element types that have derivatives: floats, of any size, and complex numbers not.
_FLOATS = {
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
}

#: Operators that draw anew when they are computed again.
_RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


class ReversedNode:
    """A node on the way back, as rules see it.

    Attributes:
        proto: The node.
        builder: What appends the nodes that compute gradients.
        attributes: The node's attributes.
    """

    def __init__(self, proto: onnx.NodeProto, builder: GraphBuilder, active: set[str]) -> None:
        """Wrap a node; ``active`` are the names by which gradients are wanted."""
        self.proto = proto
        self.builder = builder
        self.attributes: dict[str, Any] = {a.name: _attribute(a) for a in proto.attribute}
        self.active = active
        self.by_captured: dict[str, Value] = {}

    @property
    def count(self) -> int:
        """How many inputs the node names."""
        return len(self.proto.input)

    def optional(self, index: int) -> Value | None:
        """Return an input, ``None`` where it is absent."""
        given = index < len(self.proto.input) and self.proto.input[index]
        return self.builder.value(self.proto.input[index]) if given else None

    def input(self, index: int = 0) -> Value:
        """Return an input that must be there."""
        return self.builder.value(self.proto.input[index])

    def output(self, index: int = 0) -> Value:
        """Return an output; one that the node does not compute yet is added to it."""
        while len(self.proto.output) <= index:
            self.proto.output.append("")
        if not self.proto.output[index]:
            self.proto.output[index] = self.builder.fresh(f"{self.proto.output[0]}.output{index}")
            self.builder._infer(self.proto)
        return self.builder.value(self.proto.output[index])

    def wants(self, index: int) -> bool:
        """Whether the gradient by an input is wanted."""
        return index < len(self.proto.input) and self.proto.input[index] in self.active

    def get(self, name: str, default: Any) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def refuse(self, why: str) -> UnsupportedOperatorError:
        """Return the error that says why the node has no derivative here."""
        return UnsupportedOperatorError(f"{self.proto.op_type} {why}")

    def constant(self, index: int) -> NDArray[Any] | None:
        """Return the value of an input, ``None`` where it is absent or computed at run time."""
        value = self.optional(index)
        return None if value is None else value.constant

    def through(
        self, definition: Callable[[ReversedNode], Any], gradients: Sequence[Value | None]
    ) -> list[Value | None]:
        """Write the node in terms of others, and go back through those."""
        start = len(self.builder.nodes)
        outputs = definition(self)
        made = list(outputs) if isinstance(outputs, tuple) else [outputs]
        nodes = self.builder.nodes[start:]
        seeds = [(y.name, g) for y, g in zip(made, gradients, strict=False) if g is not None]
        wanted = [name for name in dict.fromkeys(self.proto.input) if name in self.active]
        found = gradients_by(self.builder, nodes, seeds, wanted)
        # An input that is read twice gets its gradient once.
        return [found.pop(name, None) for name in self.proto.input]


def gradients_by(
    builder: GraphBuilder, nodes: Sequence[onnx.NodeProto], seeds: Iterable[tuple[str, Value]], wanted: Iterable[str]
) -> dict[str, Value]:
    """Append the nodes that compute gradients.

    Args:
        builder: What appends them.
        nodes: The nodes to go back through, in an order in which they run.
        seeds: Gradients by what they compute.
        wanted: Names of the tensors by which to differentiate.

    Returns:
        The gradients by name; none for what nothing depends on.

    Raises:
        UnsupportedOperatorError: There is no rule for a node.
    """
    wanted = list(wanted)
    active = _active(builder, nodes, wanted)
    parts: dict[str, list[Value]] = {}
    for name, seed in seeds:
        # The seeds may have been made outside, and what is computed from them belongs here.
        parts.setdefault(name, []).append(builder.value(seed.name))
    sums: dict[str, Value] = {}
    for proto in reversed(nodes):
        if active.isdisjoint(_read(proto)):
            continue
        gradients = [_total(builder, parts, sums, name) if name in active else None for name in proto.output]
        if all(gradient is None for gradient in gradients):
            continue
        for name, gradient in _apply(ReversedNode(proto, builder, active), gradients):
            parts.setdefault(name, []).append(gradient)
    found = {name: _total(builder, parts, sums, name) for name in wanted}
    return {name: gradient for name, gradient in found.items() if gradient is not None}


def _apply(node: ReversedNode, gradients: list[Value | None]) -> Iterable[tuple[str, Value]]:
    proto = node.proto
    rule = find_rule(proto.domain, proto.op_type, node.builder.imports.get(proto.domain, 1))
    label = f"{proto.domain}::{proto.op_type}".removeprefix("::")
    if rule is None:
        raise UnsupportedOperatorError(f"there is no rule for {label} (node {proto.name!r})")
    try:
        result = rule(node, *gradients)
    except UnsupportedOperatorError as error:
        place = f" (node {proto.name!r})"
        raise UnsupportedOperatorError(f"{error}{'' if '(node ' in str(error) else place}") from error
    by_inputs = list(result) if isinstance(result, (tuple, list)) else [result]
    for name, gradient in (*zip(proto.input, by_inputs, strict=False), *node.by_captured.items()):
        if gradient is not None and name in node.active:
            yield name, gradient


def _total(builder: GraphBuilder, parts: Mapping[str, list[Value]], sums: dict[str, Value], name: str) -> Value | None:
    if name not in sums and parts.get(name):
        first, *others = parts[name]
        for other in others:
            first = builder.same_type(_added(builder, first, other), first)
        sums[name] = first
    return sums.get(name)


def _added(builder: GraphBuilder, first: Value, other: Value) -> Value:
    """Return the sum of two gradients; of sequences, entry by entry."""
    kind = first.type
    if kind is None or not kind.HasField("sequence_type"):
        return first + other
    element = kind.sequence_type.elem_type.tensor_type.elem_type
    return map_sequence(
        first,
        element,
        lambda inner, i: inner.op("Add", *(inner.op("SequenceAt", inner.value(v.name), i) for v in (first, other))),
    )


def _active(builder: GraphBuilder, nodes: Sequence[onnx.NodeProto], wanted: Iterable[str]) -> set[str]:
    """Return the names of what depends on the wanted tensors and has a derivative."""
    active = set(wanted)
    for node in nodes:
        if not active.isdisjoint(_read(node)):
            active.update(name for name in node.output if name and is_differentiable(builder, name))
    return active


def is_differentiable(builder: GraphBuilder, name: str) -> bool:
    """Whether a value is of a kind that has derivatives, as far as is known."""
    kind = builder.types.get(name)
    while kind is not None and not kind.HasField("tensor_type"):
        if kind.HasField("sequence_type"):
            kind = kind.sequence_type.elem_type
        elif kind.HasField("optional_type"):
            kind = kind.optional_type.elem_type
        else:
            return True
    return kind is None or kind.tensor_type.elem_type in (0, *_FLOATS)


def held_graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Return the graphs that a node holds."""
    return [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]


def _read(node: onnx.NodeProto) -> list[str]:
    return [name for name in (*node.input, *captured_names(node)) if name]


def captured_names(node: onnx.NodeProto) -> list[str]:
    """Return the names of what the graphs of a node read around it, in the order of their first use."""
    found: dict[str, None] = {}
    for graph in held_graphs(node):
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        for inner in graph.node:
            found.update((name, None) for name in _read(inner) if name not in own)
            own.update(inner.output)
        found.update((value.name, None) for value in graph.output if value.name not in own)
    return list(found)


def replay(builder: GraphBuilder, graph: onnx.GraphProto, inputs: Sequence[Value]) -> list[Value]:
    """Append the nodes of a graph that a node holds, under fresh names; return its outputs.

    Raises:
        UnsupportedOperatorError: A node draws random numbers, which would be others.
    """
    names = {given.name: value.name for given, value in zip(graph.input, inputs, strict=True)}
    for tensor in graph.initializer:
        names[tensor.name] = builder.constant(onnx.numpy_helper.to_array(tensor)).name
    for node in graph.node:
        if node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2):
            raise UnsupportedOperatorError(f"{node.op_type} in a branch or a loop body is not differentiated")
        copy = _renamed(node, names)
        for name in node.output:
            if name:
                names[name] = builder.fresh(name)
        copy.output[:] = [names.get(name, name) for name in node.output]
        builder.append(copy)
        _take_declared(builder, graph, names)
    # What is handed on unchanged is computed by no node of the graph; outputs have to be.
    return [builder.value(names.get(value.name, value.name)) for value in graph.output]


def _take_declared(builder: GraphBuilder, graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Take over declared types where inference found none."""
    for value in (*graph.value_info, *graph.output):
        name = names.get(value.name)
        if name is not None and name not in builder.types and value.type.WhichOneof("value"):
            builder.types[name] = value.type


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Return a copy of a node that reads other names, also in the graphs that it holds."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    for graph in held_graphs(copy):
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        own.update(name for inner in graph.node for name in inner.output)
        around = {name: to for name, to in names.items() if name not in own}
        inner_nodes = [_renamed(inner, around) for inner in graph.node]
        del graph.node[:]
        graph.node.extend(inner_nodes)
        for value in graph.output:
            value.name = around.get(value.name, value.name)
    return copy


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [text.decode() for text in value]
    if attribute.type == onnx.AttributeProto.INTS or attribute.type == onnx.AttributeProto.FLOATS:
        return list(value)
    return value
