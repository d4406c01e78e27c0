"""Differentiating an ONNX model into an ONNX model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference
import onnx_ir as ir

from deep500.core.errors import InvalidInputError, UnsupportedOperatorError
from deep500.core.texts import message_of
from deep500.networks.differentiation.builder import GraphBuilder
from deep500.networks.differentiation.reverse_pass import captured_names, gradients_by, held_graphs
from deep500.networks.differentiation.rule_table import has_rule
from deep500.networks.normalise.expand import expand_functions

__all__ = ["differentiated", "reached_inputs"]

#: Operators of which ONNX infers nothing, and whose output has the type of the first input.
_OF_TYPE_OF_INPUT = {"GroupNormalization"}


def differentiated(
    model: onnx.ModelProto, inputs: Sequence[str], output: str, what: str
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """Return a model that also computes the gradient of the sum of an output by some inputs.

    Shapes may be symbolic: what the gradient needs to know of them is computed at run time.

    Args:
        model: A model; it is not changed.
        inputs: Names of the inputs (or initializers) by which to differentiate.
        output: Name of the output.
        what: How messages name the model.

    Returns:
        The model, whose outputs are followed by the gradients, and the name of the gradient by each input.

    Raises:
        InvalidInputError: Shapes of the model contradict each other.
        UnsupportedOperatorError: There is no rule for an operator between an input and the output.
    """
    derived = _inferred(_expanded(model, inputs))
    graph = derived.graph
    types = {value.name: value.type for value in (*graph.input, *graph.value_info, *graph.output)}
    for tensor in graph.initializer:
        types.setdefault(tensor.name, onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims)))
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer if t.name not in inputs}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            constants[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    taken = {*types, *(name for node in _all_nodes(graph) for name in (*node.input, *node.output))}
    imports = {entry.domain: entry.version for entry in derived.opset_import}
    builder = GraphBuilder(taken, types, constants, imports)
    nodes = list(graph.node)
    try:
        seed = builder.ones_like(builder.value(output))
        found = gradients_by(builder, nodes, [(output, seed)], inputs)
    except UnsupportedOperatorError as error:
        raise UnsupportedOperatorError(f"{what} cannot be differentiated as a graph: {message_of(error)}.") from error
    names = {}
    for given in inputs:
        gradient = found.get(given)
        value = builder.zeros_like(builder.value(given)) if gradient is None else gradient
        name = f"{given}.grad"
        while name in taken:
            name += "_"
        builder.append(onnx.helper.make_node("Identity", [value.name], [name], name=name))
        graph.output.append(onnx.ValueInfoProto(name=name, type=types[given]))
        names[given] = name
    graph.node.extend(builder.nodes)
    graph.initializer.extend(builder.initializers)
    del graph.value_info[:]
    return derived, names


def reached_inputs(model: onnx.ModelProto, inputs: Sequence[str], output: str) -> list[str]:
    """Return those of some inputs that an output depends on."""
    makers = {name: node for node in model.graph.node for name in node.output}
    found, pending = set(), [output]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        if name in makers:
            pending += [read for read in (*makers[name].input, *captured_names(makers[name])) if read]
    return [name for name in inputs if name in found]


def _expanded(model: onnx.ModelProto, inputs: Sequence[str]) -> onnx.ModelProto:
    """Return a copy in which operators between that have a definition, and no rule, are replaced by it."""
    # Some definitions depend on the types.
    current = ir.from_proto(_inferred(model))
    while True:
        proto = ir.to_proto(current)
        between = _between(proto, inputs)

        def is_kept(domain: str, operator: str, version: int, between: set[tuple[str, str]] = between) -> bool:
            return (domain, operator) not in between or has_rule(domain, operator, version)

        found = expand_functions(current, is_kept)
        if found is None:
            return proto
        current = found


def _between(model: onnx.ModelProto, inputs: Sequence[str]) -> set[tuple[str, str]]:
    """Return domain and name of the operators that depend on some inputs."""
    reached, found = set(inputs), set()
    for node in model.graph.node:
        if not reached.isdisjoint((*node.input, *captured_names(node))):
            reached.update(name for name in node.output if name)
            found.add((node.domain, node.op_type))
            found.update((inner.domain, inner.op_type) for graph in held_graphs(node) for inner in _all_nodes(graph))
    return found


def _all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for inner in held_graphs(node):
            yield from _all_nodes(inner)


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    known = list(_all_nodes(model.graph))
    simpler = onnx.ModelProto()
    simpler.CopyFrom(model)
    for node in _all_nodes(simpler.graph):
        if node.op_type in _OF_TYPE_OF_INPUT and not node.domain:
            del node.input[1:], node.attribute[:]
            node.op_type = "Identity"
    try:
        inferred = onnx.shape_inference.infer_shapes(simpler, data_prop=True)
    except Exception as error:
        # Shape inference reports contradictions by exceptions of several unrelated types.
        raise InvalidInputError(f"The shapes of the inputs contradict the network: {message_of(error)}") from error
    for node, original in zip(_all_nodes(inferred.graph), known, strict=True):
        if node.op_type != original.op_type:
            node.CopyFrom(original)
    return inferred
