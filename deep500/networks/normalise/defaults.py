"""ONNX' defaults of attributes written down where the definition of an operator refers to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx import defs

__all__ = ["nodes_of", "write_defaults"]


def write_defaults(proto: onnx.ModelProto) -> None:
    """Write down the defaults of attributes that nodes leave out, of operators that ONNX defines as functions.

    The checker infers shapes through the definition, and fails where that refers to an attribute that is not there, as
    MeanVarianceNormalization's does to ``axes``.

    Args:
        proto: The model; it is changed.
    """
    versions = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in proto.opset_import}
    for node in nodes_of(proto.graph.node):
        domain = "" if node.domain == "ai.onnx" else node.domain
        if domain not in versions or not defs.has(node.op_type, domain):
            continue
        try:
            schema = defs.get_schema(node.op_type, versions[domain], domain)
        except defs.SchemaError:  # it did not exist yet
            continue
        if not schema.has_function:
            continue
        given = {attribute.name for attribute in node.attribute}
        for name, attribute in schema.attributes.items():
            if name not in given and attribute.default_value.name:
                node.attribute.add().CopyFrom(attribute.default_value)


def nodes_of(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of the graphs that they hold, however deep."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from nodes_of(graph.node)
