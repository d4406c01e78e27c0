"""Attributes of ONNX' operators: which there are, and defaults that have to be written down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import onnx
from onnx import defs

from deep500.core.errors import InvalidNetworkError

__all__ = ["check_attributes", "nodes_of", "write_defaults"]


def write_defaults(proto: onnx.ModelProto) -> None:
    """Write down the defaults of attributes that nodes leave out, of operators that ONNX defines as functions.

    The checker infers shapes through the definition, and fails where that refers to an attribute that is not there, as
    MeanVarianceNormalization's does to ``axes``.

    Args:
        proto: The model; it is changed.
    """
    for node, schema in _with_schema(proto):
        if not schema.has_function:
            continue
        given = {attribute.name for attribute in node.attribute}
        for name, attribute in schema.attributes.items():
            if name not in given and attribute.default_value.name:
                node.attribute.add().CopyFrom(attribute.default_value)


def check_attributes(proto: onnx.ModelProto) -> None:
    """Refuse attributes that an operator does not have; the checker lets them pass where it is defined as a function.

    Args:
        proto: A model that the checker accepts.

    Raises:
        InvalidNetworkError: A node has one.
    """
    for node, schema in _with_schema(proto):
        for attribute in node.attribute:
            if attribute.name not in schema.attributes and not attribute.name.startswith("__"):
                name = node.name or (node.output[0] if node.output else "")
                raise InvalidNetworkError(
                    f"Node {name!r} ({node.domain or 'ai.onnx'}::{node.op_type}) has the attribute {attribute.name!r}, "
                    f"which the operator has not. Its attributes: {', '.join(sorted(schema.attributes)) or 'none'}."
                )


def _with_schema(proto: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, Any]]:
    """Yield the nodes of ONNX' operators, each with what ONNX says of the operator."""
    versions = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in proto.opset_import}
    own = {(function.domain, function.name) for function in proto.functions}
    for node in nodes_of(proto.graph.node):
        domain = "" if node.domain == "ai.onnx" else node.domain
        if domain not in versions or (domain, node.op_type) in own or not defs.has(node.op_type, domain):
            continue
        try:
            yield node, defs.get_schema(node.op_type, versions[domain], domain)
        except defs.SchemaError:  # it did not exist yet
            continue


def nodes_of(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of the graphs that they hold, however deep."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from nodes_of(graph.node)
