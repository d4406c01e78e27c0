"""One node of a network as an adapter sees it: names, attributes, types; no ONNX objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.core.value_descriptor import OptionalDescriptor, SequenceDescriptor, ValueDescriptor
from deep500.networks._tensor_values import tensor_value
from deep500.networks.tensor_roles import TensorRole, initializer_role

__all__ = [
    "OperatorNode",
    "Subprogram",
    "captured_values",
    "describe_type",
    "describe_value",
    "held_graphs",
    "read_node",
]


@dataclass(frozen=True)
class OperatorNode:
    """One operator call.

    Attributes:
        name: The node's name in the network.
        domain: The operator's domain, ``""`` for ONNX' own.
        op_type: The operator's name.
        version: Opset version under which the node is to be understood.
        attributes: Attribute values as Python values (``int``, ``float``, ``str``, lists of these, NumPy arrays).
        inputs: Names of the input tensors, ``""`` where an optional input is absent.
        outputs: Names of the output tensors, ``""`` where an optional output is not wanted.
        input_types: Dtype and shape of every input, ``None`` where absent, unknown or no tensor.
        output_types: Dtype and shape of every output, ``None`` where unknown or no tensor.
        constants: Values of those inputs that are stored in the network and not trained, by input index.
        graphs: The graphs that the node holds (branches, loop bodies), by the name of their attribute.
        captured: Names of the tensors around the node that its graphs read.
        imports: The opset versions of the network, by domain.
        source: The ONNX node, for whoever needs what is not here.
    """

    name: str
    domain: str
    op_type: str
    version: int
    attributes: Mapping[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_types: tuple[TensorDescriptor | None, ...] = ()
    output_types: tuple[TensorDescriptor | None, ...] = ()
    constants: Mapping[int, NDArray[Any]] = field(default_factory=dict)
    graphs: Mapping[str, Subprogram] = field(default_factory=dict)
    captured: tuple[str, ...] = ()
    imports: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    source: ir.Node | None = field(default=None, repr=False, compare=False)

    def rank(self, index: int = 0) -> int:
        """Return the rank of an input.

        Raises:
            InvalidNetworkError: Shape inference could not tell it.
        """
        descriptor = self.input_types[index] if index < len(self.input_types) else None
        if descriptor is None or descriptor.rank is None:
            raise InvalidNetworkError(
                f"The rank of input {index} ({self.inputs[index]!r}) of {self.label} is not known, and translating it "
                f"needs the rank. Declare the shapes of the network's inputs (sizes may be symbolic)."
            )
        return descriptor.rank

    def constant(self, index: int) -> NDArray[Any] | None:
        """Return the value of an optional input that must be a constant; ``None`` when it is absent.

        Raises:
            InvalidNetworkError: The input is computed or fed at run time.
        """
        if index >= len(self.inputs) or not self.inputs[index]:
            return None
        if index not in self.constants:
            raise InvalidNetworkError(
                f"Input {index} ({self.inputs[index]!r}) of {self.label} is computed at run time; only a constant is "
                f"accepted there."
            )
        return self.constants[index]

    def is_given(self, index: int) -> bool:
        """Whether an optional input is there."""
        return index < len(self.inputs) and bool(self.inputs[index])

    @property
    def label(self) -> str:
        """How messages name the node: name, operator, domain and version."""
        domain = self.domain or "ai.onnx"
        return f"node {self.name!r} ({domain}::{self.op_type}, version {self.version})"


@dataclass(frozen=True, eq=False)
class Subprogram:
    """A graph that a node holds: a branch, or the body of a loop.

    Attributes:
        nodes: Its nodes in an order in which they can run.
        inputs: Names of its own inputs.
        outputs: Names of its outputs, among which captured tensors may be.
        stored: Values of the tensors that are stored in it, by name.
        captured: Names of the tensors around it that it reads.
    """

    nodes: tuple[OperatorNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    stored: Mapping[str, NDArray[Any]]
    captured: tuple[str, ...]


def describe_value(value: ir.Value | None) -> TensorDescriptor | None:
    """Return what is known of an ONNX value, ``None`` when it is absent, its type unknown, or no tensor."""
    described = None if value is None else describe_type(value.type, value.shape)
    return described if isinstance(described, TensorDescriptor) else None


def describe_type(kind: Any, shape: ir.Shape | None) -> ValueDescriptor | None:
    """Return what is known of a value of an ONNX type, ``None`` when that is not even its element type."""
    if isinstance(kind, ir.SequenceType):
        element = describe_type(kind.elem_type, shape)
        return None if element is None else SequenceDescriptor(element)
    if isinstance(kind, ir.OptionalType):
        element = describe_type(kind.elem_type, shape)
        return None if element is None else OptionalDescriptor(element)
    if not isinstance(kind, ir.TensorType) or kind.dtype == ir.DataType.UNDEFINED:
        return None
    sizes = None if shape is None else tuple(_size(d if isinstance(d, int) else d.value) for d in shape)
    return TensorDescriptor(STRING if kind.dtype == ir.DataType.STRING else kind.dtype.numpy(), sizes)


def _size(size: int | str | None) -> int | str | None:
    """Return a size; ``None`` for a negative one, which ONNX' shape inference writes where it knows nothing."""
    return None if isinstance(size, int) and size < 0 else size


def held_graphs(node: ir.Node) -> Iterator[tuple[str, ir.Graph]]:
    """Yield name and graph of every attribute of a node that holds one."""
    for name, attribute in node.attributes.items():
        if attribute.type == ir.AttributeType.GRAPH:
            yield name, attribute.as_graph()


def captured_values(node: ir.Node) -> list[ir.Value]:
    """Return the values around a node that the graphs which it holds read, in the order of their first use."""
    found: dict[ir.Value, None] = {}
    for _, graph in held_graphs(node):
        own = {*graph.inputs, *graph.initializers.values(), *(v for inner in graph for v in inner.outputs)}
        read = [v for inner in graph for v in (*inner.inputs, *captured_values(inner)) if v is not None]
        found.update(dict.fromkeys(v for v in (*read, *graph.outputs) if v not in own))
    return list(found)


def read_node(
    node: ir.Node, imports: Mapping[str, int], graphs: Mapping[str, Subprogram] | None = None
) -> OperatorNode:
    """Turn an ONNX node into an :class:`OperatorNode`.

    Args:
        node: The node.
        imports: The opset versions of the network, by domain.
        graphs: What the graphs that it holds were turned into.
    """
    constants = {}
    for index, value in enumerate(node.inputs):
        if value is not None and _is_constant(value) and value.const_value is not None:
            constants[index] = tensor_value(value.const_value)
    held = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    return OperatorNode(
        name=node.name or "/".join(v.name or "" for v in node.outputs),
        domain=node.domain,
        op_type=node.op_type,
        version=node.version or imports.get(node.domain, 1),
        attributes={name: _attribute_value(a) for name, a in node.attributes.items() if a.type not in held},
        inputs=tuple("" if v is None else v.name or "" for v in node.inputs),
        outputs=tuple(v.name or "" for v in node.outputs),
        input_types=tuple(describe_value(v) for v in node.inputs),
        output_types=tuple(describe_value(v) for v in node.outputs),
        constants=constants,
        graphs=graphs or {},
        captured=tuple(v.name or "" for v in captured_values(node)),
        imports=dict(imports),
        source=node,
    )


def _is_constant(value: ir.Value) -> bool:
    if value.producer() is not None or value.is_graph_input() or value.const_value is None:
        return False
    return initializer_role(value) is not TensorRole.PARAMETER


def _attribute_value(attribute: ir.Attr) -> Any:
    value = attribute.value
    if attribute.type == ir.AttributeType.TENSOR:
        return tensor_value(value)
    # ONNX' floats are of 32 bits: a network means the same before and after it was written to a file.
    if attribute.type == ir.AttributeType.FLOAT:
        return float(np.float32(value))
    if attribute.type == ir.AttributeType.FLOATS:
        return [float(np.float32(v)) for v in value]
    if isinstance(value, (tuple, list)):
        return list(value)
    return value
