"""Forms of operators that the official version converter gets wrong or refuses, and what says the same today."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError
from deep500.core.registry import Registry
from deep500.networks._structure import has_long_vectors
from deep500.networks.normalise.defaults import nodes_of

__all__ = ["NEWEST_OPSET", "OLD_FORMS", "OldForm", "OldNode", "newest_forms", "set_aside_old_forms"]

#: Opset of the forms that take the place of old ones.
NEWEST_OPSET = 23

#: One file for each operator with an old form.
OLD_FORMS = Registry("old form", "deep500.networks.normalise.old_forms")

#: Domain in which nodes wait while the converter does the others; no model uses it.
_DOMAIN = "deep500.old"


@dataclass
class OldNode:
    """A node in an old form, and the nodes that take its place.

    Attributes:
        node: The node.
        opset: The opset that it was written for.
        types: Types of the values around it, as far as they are known, by name.
        constants: The stored values around it, by name.
        nodes: The nodes that take its place.
    """

    node: onnx.NodeProto
    opset: int
    types: dict[str, onnx.TypeProto]
    constants: dict[str, onnx.TensorProto]
    nodes: list[onnx.NodeProto] = dataclasses.field(default_factory=list)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the node, texts as ``str``."""
        found = {a.name: onnx.helper.get_attribute_value(a) for a in self.node.attribute}
        return {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}

    def given(self, index: int) -> str:
        """Return the name of an input, "" where it is absent."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def shape(self, name: str) -> list[int | None] | None:
        """Return the sizes of a value, ``None`` for those that are not known; ``None`` if its rank is not known."""
        if name in self.constants:
            return list(self.constants[name].dims)
        kind = self.types.get(name)
        if kind is None or not kind.tensor_type.HasField("shape"):
            return None
        return [d.dim_value if d.HasField("dim_value") else None for d in kind.tensor_type.shape.dim]

    def rank(self, name: str) -> int:
        """Return the rank of a value.

        Raises:
            InvalidNetworkError: Shape inference could not tell it.
        """
        shape = self.shape(name)
        if shape is None:
            raise self.error(f"the rank of {name!r} is not known")
        return len(shape)

    def element_type(self, name: str) -> int:
        """Return the element type of a value, 0 where it is not known."""
        if name in self.constants:
            return int(self.constants[name].data_type)
        return int(self.types[name].tensor_type.elem_type) if name in self.types else 0

    def constant(self, name: str) -> NDArray[Any] | None:
        """Return the value of a stored tensor, ``None`` of any other."""
        return np.asarray(onnx.numpy_helper.to_array(self.constants[name])) if name in self.constants else None

    def add(self, op_type: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return the output's name.

        Args:
            op_type: The operator.
            inputs: Names of its inputs.
            output: Name of its output; by default a new one.
            **attributes: Its attributes; those that are ``None`` are left out.
        """
        output = output or self._name(op_type)
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(onnx.helper.make_node(op_type, inputs, [output], name=output, **given))
        return output

    def store(self, value: NDArray[Any]) -> str:
        """Add a constant, and return its name."""
        name = self._name("constant")
        tensor = onnx.numpy_helper.from_array(value, name)
        self.nodes.append(onnx.helper.make_node("Constant", [], [name], name=name, value=tensor))
        return name

    def finish(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> None:
        """Add the node that has the outputs and the name of the old one."""
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(onnx.helper.make_node(op_type, inputs, self.node.output, name=self.node.name, **given))

    def error(self, reason: str) -> InvalidNetworkError:
        """Return the error that the node cannot be brought to its newest form."""
        name = self.node.name or self.node.output[0]
        return InvalidNetworkError(
            f"Node {name!r} (ai.onnx::{self.node.op_type}, opset {self.opset}) has no newer form: {reason}."
        )

    def _name(self, part: str) -> str:
        return f"{self.node.output[0]}.{part}{len(self.nodes)}"


@dataclass(frozen=True)
class OldForm:
    """How one operator was written in some opsets.

    Attributes:
        op_type: The operator.
        opsets: First and last opset of the form.
        rewrite: Adds the nodes of today to the :class:`OldNode` that it is given.
        applies: Whether a node has the form; by default all of these opsets do.
    """

    op_type: str
    opsets: tuple[int, int]
    rewrite: Callable[[OldNode], None]
    applies: Callable[[OldNode], bool] = lambda old: True


def set_aside_old_forms(proto: onnx.ModelProto, opset: int) -> tuple[onnx.ModelProto, list[OldNode]]:
    """Put nodes that have an old form where the version converter does not touch them.

    Args:
        proto: The model; it is not changed.
        opset: Its opset.

    Returns:
        The model, and the nodes in the order in which :func:`newest_forms` finds them.
    """
    forms: dict[str, list[OldForm]] = {}
    for name in OLD_FORMS.names():
        for form in OLD_FORMS.get(name):
            if form.opsets[0] <= opset <= form.opsets[1]:
                forms.setdefault(form.op_type, []).append(form)
    if not any(node.op_type in forms and not node.domain for node in nodes_of(proto.graph.node)):
        return proto, []
    model = onnx.shape_inference.infer_shapes(proto, data_prop=not has_long_vectors(proto.graph))
    types, constants = _known(model.graph)
    found: list[OldNode] = []
    for node in nodes_of(model.graph.node):
        if node.op_type not in forms or node.domain:
            continue
        old = OldNode(onnx.NodeProto.FromString(node.SerializeToString()), opset, types, constants)
        for form in forms[node.op_type]:
            if form.applies(old):
                node.domain, node.op_type = _DOMAIN, f"{node.op_type}.{len(found)}"
                form.rewrite(old)
                found.append(old)
                break
    if found:
        model.opset_import.add(domain=_DOMAIN, version=1)
    return model, found


def newest_forms(proto: onnx.ModelProto, found: Sequence[OldNode]) -> onnx.ModelProto:
    """Put the newest forms in the place of nodes that were set aside, and return the changed model."""
    if found:
        _replace(proto.graph, found)
        kept = [entry for entry in proto.opset_import if entry.domain != _DOMAIN]
        del proto.opset_import[:]
        proto.opset_import.extend(kept)
    return proto


def _replace(graph: onnx.GraphProto, found: Sequence[OldNode]) -> None:
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.domain == _DOMAIN:
            nodes += found[int(node.op_type.rpartition(".")[2])].nodes
            continue
        for attribute in node.attribute:
            for held in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                _replace(held, found)
        nodes.append(onnx.NodeProto.FromString(node.SerializeToString()))
    del graph.node[:]
    graph.node.extend(nodes)


def _known(graph: onnx.GraphProto) -> tuple[dict[str, onnx.TypeProto], dict[str, onnx.TensorProto]]:
    """Return the types and the stored values of a graph and of those that its nodes hold."""
    types: dict[str, onnx.TypeProto] = {}
    constants: dict[str, onnx.TensorProto] = {}
    for part in _graphs(graph):
        types.update((value.name, value.type) for value in (*part.input, *part.value_info, *part.output))
        constants.update((tensor.name, tensor) for tensor in part.initializer)
        for node in part.node:
            if node.op_type == "Constant" and not node.domain and node.attribute and node.attribute[0].name == "value":
                constants[node.output[0]] = node.attribute[0].t
    return types, constants


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for held in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from _graphs(held)
