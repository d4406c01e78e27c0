"""Derivatives of branches and loops: their graphs are differentiated, and run once more on the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
import onnx.helper

from deep500.networks.differentiation.builder import GraphBuilder, Value
from deep500.networks.differentiation.reverse_pass import (
    ReversedNode,
    captured_names,
    gradients_by,
    held_graphs,
    is_differentiable,
    replay,
)
from deep500.networks.differentiation.rule_table import reverse_rule

__all__: list[str] = []


@reverse_rule("If")
def branch(node: ReversedNode, *gradients: Value | None) -> None:
    """The gradients of the branch that was taken; zeros for what only the other one reads. Source: ONNX If-25."""
    write = node.builder
    names = [name for name in captured_names(node.proto) if name in node.active]
    graphs = {}
    for attribute in node.proto.attribute:
        inner = write.child()
        outputs = replay(inner, attribute.g, ())
        seeds = [(y.name, g) for y, g in zip(outputs, gradients, strict=False) if g is not None]
        found = gradients_by(inner, list(inner.nodes), seeds, names)
        made = [found.get(name) or inner.zeros_like(inner.value(name)) for name in names]
        graphs[attribute.name] = graph_of(inner, attribute.name, [], made)
    results = write.ops("If", node.input(0), count=len(names), **graphs)
    node.by_captured = {name: write.same_type(g, write.value(name)) for name, g in zip(names, results)}


def graph_of(write: GraphBuilder, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> onnx.GraphProto:
    """Return the nodes of a builder as a graph that a node holds."""
    # What a graph returns has to be computed in it, and under a name of its own.
    own = [write.same_type(write.op("Identity", value), value) for value in outputs]
    given, returned = ([_info(write, value) for value in values] for values in (inputs, own))
    written = [write.value(name) for node in write.nodes for name in node.output if name]
    # Whoever expands functions inside needs the types.
    known = [_info(write, value) for value in written if value.element_type]
    return onnx.helper.make_graph(write.nodes, name, given, returned, value_info=known)


def _info(write: GraphBuilder, value: Value) -> onnx.ValueInfoProto:
    kind = value.element_type
    if not kind:
        return onnx.helper.make_empty_tensor_value_info(value.name)
    shape = value.shape
    # Symbols of the graph around mean nothing inside.
    sizes = None if shape is None else [size if isinstance(size, int) else None for size in shape]
    return onnx.helper.make_tensor_value_info(value.name, kind, sizes)


@dataclass
class _Scanned:
    """A tensor whose slices the body reads: along which axis, and from which end on the way back."""

    outer: Value
    axis: int
    direction: int
    inner: Value = field(init=False)

    def enter(self, write: GraphBuilder) -> Value:
        """Make the body's input for a slice."""
        shape, rank_axis = self.outer.shape, self.axis
        sizes = None
        if shape is not None:
            rank_axis = self.axis % len(shape)
            sizes = [size for i, size in enumerate(shape) if i != rank_axis]
        self.inner = write.input("slice", element_type=self.outer.element_type, shape=sizes)
        return self.inner


@reverse_rule("Scan", since=11)
def scan(node: ReversedNode, *gradients: Value | None) -> list[Value | None]:
    """The body's gradients, from the last step to the first one. Source: ONNX Scan-25."""
    body, count = held_graphs(node.proto)[0], node.attributes["num_scan_inputs"]
    states = node.count - count
    rows = len(body.output) - states
    axes, ways = (list(node.get(f"scan_input_{name}", None) or [0] * count) for name in ("axes", "directions"))
    out_axes, out_ways = (list(node.get(f"scan_output_{name}", None) or [0] * rows) for name in ("axes", "directions"))
    initial = [node.input(i) for i in range(states)]
    before = _kept_states(node, body, states, rows, "Scan", out_axes, out_ways)
    read = [_Scanned(value, 0, 1) for value in before]
    read += [_Scanned(node.input(states + i), axes[i], 1 - ways[i]) for i in range(count)]
    by_rows = [
        None if g is None else _Scanned(g, out_axes[j], 1 - out_ways[j])
        for j, g in enumerate((list(gradients) + [None] * (states + rows))[states : states + rows])
    ]
    wanted = [False] * states + [node.wants(states + i) for i in range(count)]
    found = _way_back(node, body, initial, read, by_rows, list(gradients[:states]), wanted, head=0)
    return [*found[0], *found[1][states:]]


@reverse_rule("Loop", since=11)
def loop(node: ReversedNode, *gradients: Value | None) -> list[Value | None]:
    """The body's gradients, from the last step to the first one. Source: ONNX Loop-25."""
    body, states = held_graphs(node.proto)[0], node.count - 2
    rows = len(body.output) - 1 - states
    initial = [node.input(2 + i) for i in range(states)]
    if any(not value.element_type for value in initial):
        raise node.refuse("with states that are no tensors is not differentiated")
    before = _kept_states(node, body, states, rows, "Loop", [], [])
    read = [_Scanned(value, 0, 1) for value in before]
    by_rows = [
        None if g is None else _Scanned(g, 0, 1)
        for g in (list(gradients) + [None] * (states + rows))[states : states + rows]
    ]
    found = _way_back(node, body, initial, read, by_rows, list(gradients[:states]), [False] * len(read), head=2)
    return [None, None, *found[0]]


def _kept_states(
    node: ReversedNode, body: onnx.GraphProto, states: int, rows: int, kind: str, axes: list[int], ways: list[int]
) -> list[Value]:
    """Let a loop also return its states before every step (and the steps' numbers, for Loop), stacked."""
    write = node.builder
    head = 0 if kind == "Scan" else 2
    kept = [value.name for value in body.input[head : head + states]]
    outer = [node.input(head + i) for i in range(states)]
    if kind == "Loop":
        kept, outer = [body.input[0].name, *kept], [write.constant(0), *outer]
    node.output(states + rows - 1)  # the outputs that were left out, so that others may follow
    for i in range(len(node.proto.output)):
        node.output(i)
    made = []
    for name, value in zip(kept, outer, strict=True):
        inner, stacked = write.fresh(f"{name}.before"), write.fresh(f"{name}.stacked")
        body.node.append(onnx.helper.make_node("Identity", [name], [inner], name=inner))
        body.output.append(onnx.helper.make_tensor_value_info(inner, value.element_type, None))
        node.proto.output.append(stacked)
        sizes = None if value.shape is None else [None, *(s if isinstance(s, int) else None for s in value.shape)]
        write.types[stacked] = onnx.helper.make_tensor_type_proto(value.element_type, sizes)
        made.append(write.value(stacked))
    if kind == "Scan":
        settings = {"scan_output_axes": axes + [0] * len(made), "scan_output_directions": ways + [0] * len(made)}
        for attribute in [a for a in node.proto.attribute if a.name in settings]:
            node.proto.attribute.remove(attribute)
        node.proto.attribute.extend(onnx.helper.make_attribute(*item) for item in settings.items() if item[1])
    return made


def _way_back(
    node: ReversedNode,
    body: onnx.GraphProto,
    initial: list[Value],
    read: list[_Scanned],
    by_rows: Sequence[_Scanned | None],
    by_states: list[Value | None],
    wanted: list[bool],
    head: int,
) -> tuple[list[Value | None], list[Value | None]]:
    """Append a Scan that goes from the last step to the first one.

    Its states are the gradients by the states of the loop, and sums of those by what the body reads around it.

    Returns:
        The gradients by the initial states, and by what was read slice by slice.
    """
    write, inner = node.builder, node.builder.child()
    original = _without_kept_states(body, len(initial) + (1 if head else 0))
    float_states = [i for i, value in enumerate(initial) if is_differentiable(inner, value.name)]
    captured = [name for name in captured_names(node.proto) if name in node.active]
    carried = [inner.input("by_state", like=_unsized(write, initial[i])) for i in float_states]
    sums = [inner.input("sum", like=write.value(name)) for name in captured]
    slices = [part.enter(inner) for part in read]
    rows = [None if part is None else part.enter(inner) for part in by_rows]
    given = [*slices] if head == 0 else [slices[0], inner.constant(True), *slices[1:]]
    outputs = replay(inner, original, given)[1 if head else 0 :]
    states = given[: len(initial)] if head == 0 else given[2:]
    seeds = [(outputs[i].name, g) for i, g in zip(float_states, carried, strict=True)]
    seeds += [(y.name, g) for y, g in zip(outputs[len(initial) :], rows, strict=True) if g is not None]
    chosen = [part.inner for part, is_wanted in zip(read, wanted, strict=True) if is_wanted]
    names = [*(states[i].name for i in float_states), *captured, *(value.name for value in chosen)]
    found = gradients_by(inner, list(inner.nodes), seeds, names)

    def gradient(value: Value) -> Value:
        return found.get(value.name) or inner.zeros_like(value)

    made = [gradient(states[i]) for i in float_states]
    made += [total + found[name] if name in found else total for name, total in zip(captured, sums, strict=True)]
    made += [gradient(value) for value in chosen]
    parts = [*read, *(part for part in by_rows if part is not None)]
    entered = [*carried, *sums, *(part.inner for part in parts)]
    graph = graph_of(inner, f"{body.name}.gradient", entered, made)
    start = [_given_or_zeros(write, by_states, node, i) for i in float_states]
    start += [write.zeros_like(write.value(name)) for name in captured]
    results = _scan(
        write, graph, start, parts, [part for part, is_wanted in zip(read, wanted, strict=True) if is_wanted]
    )
    by_initial: list[Value | None] = [None] * len(initial)
    for i in float_states:
        by_initial[i] = write.same_type(results.pop(0), initial[i])
    for name in captured:
        node.by_captured[name] = write.same_type(results.pop(0), write.value(name))
    by_read = [
        write.same_type(results.pop(0), part.outer) if is_wanted else None
        for part, is_wanted in zip(read, wanted, strict=True)
    ]
    return by_initial, by_read


def _without_kept_states(body: onnx.GraphProto, extra: int) -> onnx.GraphProto:
    """Return a body without its last outputs and nodes, which only keep the states."""
    original = onnx.GraphProto()
    original.CopyFrom(body)
    if extra:
        del original.output[-extra:]
        del original.node[-extra:]
    return original


def _scan(
    write: GraphBuilder, graph: onnx.GraphProto, start: list[Value], parts: list[_Scanned], stacked: list[_Scanned]
) -> list[Value]:
    """Append a Scan over slices, whose last outputs are stacked as some of them were; return its outputs."""
    axes, ways = [part.axis for part in stacked], [part.direction for part in stacked]
    settings: dict[str, Any] = {"scan_output_axes": axes or None, "scan_output_directions": ways or None}
    return list(
        write.ops(
            "Scan",
            *start,
            *(part.outer for part in parts),
            count=len(start) + len(stacked),
            body=graph,
            num_scan_inputs=len(parts),
            scan_input_axes=[part.axis for part in parts],
            scan_input_directions=[part.direction for part in parts],
            **settings,
        )
    )


def _given_or_zeros(write: GraphBuilder, by_states: list[Value | None], node: ReversedNode, index: int) -> Value:
    given = by_states[index] if index < len(by_states) else None
    return write.zeros_like(node.output(index)) if given is None else given


def _unsized(write: GraphBuilder, value: Value) -> Value:
    """Return a value of the same element type and rank, of which no size is known."""
    made = write.value(write.fresh("state"))
    sizes = None if value.shape is None else [size if isinstance(size, int) else None for size in value.shape]
    write.types[made.name] = onnx.helper.make_tensor_type_proto(value.element_type, sizes)
    return made
