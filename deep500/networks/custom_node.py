"""Custom operators as nodes of a network, in an ONNX domain of their own."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from deep500.core.errors import InvalidNetworkError, OperatorError, UnknownNameError, UnsupportedOperatorError
from deep500.core.tensor_descriptor import Dimension, TensorDescriptor
from deep500.networks.operator_node import OperatorNode, describe_value, read_node
from deep500.operators.custom.catalogue import find_custom_op, register_custom_op
from deep500.operators.custom.custom_op import CUSTOM_DOMAIN, CustomOp, CustomPythonOp
from deep500.operators.custom.native_op import NativeOp

if TYPE_CHECKING:
    from onnxscript import OpBuilder

__all__ = ["CUSTOM_VERSION", "call_custom_op", "infer_custom_nodes", "node_operator"]

#: Opset version of the domain.
CUSTOM_VERSION = 1

#: What symbolic sizes are replaced by to see how an operator's output sizes depend on them: numbers with many divisors.
_TRIALS = (
    [5040 * factor for factor in range(101, 201)],
    [5040 * factor for factor in range(307, 407)],
)


def call_custom_op(builder: OpBuilder, op: CustomOp, *inputs: ir.Value | None) -> Any:
    """Add a node for a custom operator to a model that is being built, and register the operator.

    Attributes of the kind float are kept in float32, as ONNX does.

    Args:
        builder: The ``op`` of a model's ``forward(self, op, x)``.
        op: The operator.
        *inputs: The node's inputs, ``None`` for absent ones.

    Returns:
        The output, or a tuple of several.

    Raises:
        OperatorError: Another operator has its name, or it refuses the inputs.

    Example::

        class Model(nn.Module):
            def forward(self, op, x):
                return call_custom_op(op, IPow(power=3), op.Relu(x))
    """
    register_custom_op(op)
    attributes = {name: _stored(op, name, value) for name, value in op.attributes.items()}
    builder.builder.graph.opset_imports.setdefault(CUSTOM_DOMAIN, CUSTOM_VERSION)
    call = getattr(builder, op.name)
    outputs = call(*inputs, _domain=CUSTOM_DOMAIN, _version=CUSTOM_VERSION, _outputs=op.output_count, **attributes)
    values = [outputs] if isinstance(outputs, ir.Value) else list(outputs)
    _set_types(op, inputs, values)
    return values[0] if op.output_count == 1 else tuple(values)


def node_operator(node: OperatorNode) -> CustomOp:
    """Return the operator of a node in the custom domain.

    Raises:
        UnsupportedOperatorError: None of its name was registered.
        InvalidNetworkError: The node's attributes, inputs or outputs are not the operator's.
    """
    try:
        op = find_custom_op(node.op_type, node.attributes)
        op.check_input_count(len(node.inputs))
    except UnknownNameError as error:
        raise UnsupportedOperatorError(f"{node.label} cannot run: {error}") from error
    except OperatorError as error:
        raise InvalidNetworkError(f"{node.label}: {error}") from error
    if len(node.outputs) > op.output_count:
        raise InvalidNetworkError(
            f"{node.label} has {len(node.outputs)} outputs; the custom operator gives {op.output_count}."
        )
    if isinstance(op, CustomPythonOp):
        op = copy.copy(op)  # the author's own may be called outside of networks
        op.in_network = True
    return op


def infer_custom_nodes(nodes: Iterable[ir.Node]) -> bool:
    """Set what is not known of the types of custom nodes' outputs and follows from those of the inputs.

    Nodes whose operator was not registered are left alone.

    Returns:
        Whether something was set, so that more can be inferred after the nodes.

    Raises:
        InvalidNetworkError: An operator refuses its inputs, or contradicts what the network says of its outputs.
    """
    changed = False
    for node in nodes:
        if node.domain != CUSTOM_DOMAIN:
            continue
        try:
            op = node_operator(read_node(node, {CUSTOM_DOMAIN: CUSTOM_VERSION}))
        except UnsupportedOperatorError:
            continue  # it can be registered later
        try:
            changed = _set_types(op, node.inputs, node.outputs) or changed
        except OperatorError as error:
            raise InvalidNetworkError(f"{read_node(node, {CUSTOM_DOMAIN: CUSTOM_VERSION}).label}: {error}") from error
    return changed


def _stored(op: CustomOp, name: str, value: Any) -> Any:
    """Return an attribute for ONNX, which has to be told of what kind a list without entries is."""
    if value != ():
        return list(value) if isinstance(value, tuple) else value
    kinds = op.library.description.attributes if isinstance(op, NativeOp) else {}
    return ir.AttrFloat32s(name, []) if kinds.get(name) == "floats" else ir.AttrInt64s(name, [])


def _set_types(op: CustomOp, inputs: Sequence[ir.Value | None], outputs: Sequence[ir.Value]) -> bool:
    """Set what is not known of values that an operator computes; say whether there was anything."""
    described = [describe_value(value) for value in inputs]
    if any(d is None or d.shape is None for d, value in zip(described, inputs) if value is not None):
        return False
    if not op.infers and op.output_count != 1:
        return False  # the default, that outputs are like the first input, is not worth much here
    changed = False
    for index, (value, inferred) in enumerate(zip(outputs, _inferred(op, described))):
        known = describe_value(value)
        merged = inferred if known is None else _merged(op.name, index, known, inferred)
        if merged != known:
            value.type = ir.TensorType(ir.DataType.from_numpy(merged.numpy_dtype))
            value.shape = ir.Shape(merged.shape or ())
            changed = True
    return changed


def _merged(name: str, index: int, known: TensorDescriptor, inferred: TensorDescriptor) -> TensorDescriptor:
    """Return all that is known of an output."""
    sizes = list(zip(known.shape or (), inferred.shape or ()))
    clashes = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in sizes)
    if known.dtype != inferred.dtype or clashes or (known.shape is not None and known.rank != inferred.rank):
        raise OperatorError(f"output {index} of {name} is {inferred}; the network says that it is {known}.")
    if known.shape is None:
        return inferred
    return TensorDescriptor(known.dtype, [b if a is None or isinstance(b, int) else a for a, b in sizes])


def _inferred(op: CustomOp, inputs: Sequence[TensorDescriptor | None]) -> list[TensorDescriptor]:
    """Return descriptors of the outputs; a size that depends on symbolic ones is either one of them or unknown."""
    trials = []
    for numbers in _TRIALS:
        free = iter(numbers)
        values: dict[Dimension, int] = {}
        shapes = [None if d is None else tuple(_number(size, values, free) for size in d.shape or ()) for d in inputs]
        found, dtypes = op.infer_outputs(shapes, [None if d is None else d.dtype for d in inputs])
        trials.append((found, {number: symbol for symbol, number in values.items()}))
    (first, symbols), (second, _) = trials
    sizes = [[_size(a, b, symbols, trials[1][1]) for a, b in zip(shape, other)] for shape, other in zip(first, second)]
    return [TensorDescriptor(dtype, shape) for dtype, shape in zip(dtypes, sizes)]


def _number(size: Dimension, values: dict[Dimension, int], free: Any) -> int:
    """Return a number for a size: one for every symbol, and one for every size of which nothing is known."""
    if isinstance(size, int):
        return size
    if size is None:
        return int(next(free))
    if size not in values:
        values[size] = next(free)
    return values[size]


def _size(a: int, b: int, symbols: dict[int, Dimension], others: dict[int, Dimension]) -> Dimension:
    if a == b:
        return a
    symbol = symbols.get(a)
    return symbol if symbol is not None and others.get(b) == symbol else None
