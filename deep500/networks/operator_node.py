"""One node of a network as an adapter sees it: names, attributes, types; no ONNX objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.tensor_roles import TensorRole, initializer_role

__all__ = ["OperatorNode", "describe_value", "read_node"]


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
        input_types: Dtype and shape of every input, ``None`` where absent or unknown.
        output_types: Dtype and shape of every output, ``None`` where unknown.
        constants: Values of those inputs that are stored in the network and not trained, by input index.
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

    @property
    def label(self) -> str:
        """How messages name the node: name, operator, domain and version."""
        domain = self.domain or "ai.onnx"
        return f"node {self.name!r} ({domain}::{self.op_type}, version {self.version})"


def describe_value(value: ir.Value | None) -> TensorDescriptor | None:
    """Return what is known of an ONNX value, ``None`` when it is absent or its type unknown."""
    if value is None or not isinstance(value.type, ir.TensorType):
        return None  # sequences and optionals have an element type too, but are no tensors
    if value.dtype is None or value.dtype in (ir.DataType.UNDEFINED, ir.DataType.STRING):
        return None
    shape = None
    if value.shape is not None:
        shape = tuple(d if isinstance(d, int) else d.value for d in value.shape)
    return TensorDescriptor(value.dtype.numpy(), shape)


def read_node(node: ir.Node, opset_version: int) -> OperatorNode:
    """Turn an ONNX node into an :class:`OperatorNode`."""
    constants = {}
    for index, value in enumerate(node.inputs):
        if value is not None and _is_constant(value) and value.const_value is not None:
            constants[index] = value.const_value.numpy()
    return OperatorNode(
        name=node.name or "/".join(v.name or "" for v in node.outputs),
        domain=node.domain,
        op_type=node.op_type,
        version=opset_version,
        attributes={name: _attribute_value(attribute) for name, attribute in node.attributes.items()},
        inputs=tuple("" if v is None else v.name or "" for v in node.inputs),
        outputs=tuple(v.name or "" for v in node.outputs),
        input_types=tuple(describe_value(v) for v in node.inputs),
        output_types=tuple(describe_value(v) for v in node.outputs),
        constants=constants,
    )


def _is_constant(value: ir.Value) -> bool:
    if value.producer() is not None or value.is_graph_input() or value.dtype == ir.DataType.STRING:
        return False
    return initializer_role(value) is not TensorRole.PARAMETER


def _attribute_value(attribute: ir.Attr) -> Any:
    value = attribute.value
    if attribute.type == ir.AttributeType.TENSOR:
        return np.asarray(value.numpy())
    # ONNX' floats are of 32 bits: a network means the same before and after it was written to a file.
    if attribute.type == ir.AttributeType.FLOAT:
        return float(np.float32(value))
    if attribute.type == ir.AttributeType.FLOATS:
        return [float(np.float32(v)) for v in value]
    if isinstance(value, (tuple, list)):
        return list(value)
    return value
