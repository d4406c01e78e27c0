"""A program as an ONNX model of its own: for runtimes that take ONNX as it is, and for whoever rewrites graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
import onnx.helper
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import UnsupportedOperatorError
from deep500.core.tensor_descriptor import STRING, TensorDescriptor
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode
from deep500.networks.program import Program
from deep500.networks.saving import INLINE_LIMIT

__all__ = ["node_protos", "program_model", "tensor_proto"]


def program_model(
    network: Network,
    program: Program,
    *,
    stored: Mapping[str, NDArray[Any]],
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> onnx.ModelProto:
    """Return a program as a model.

    Args:
        network: The network that the program is of.
        program: What the model is to compute.
        stored: Values of the constants, and of those parameters and states that become part of the model. The others
            are inputs, after those of the program; so are all of them where a message of protobuf cannot hold them.
        shapes: Shapes of inputs, by name, in place of what the network declares.

    Returns:
        A model whose outputs are ``program.outputs`` followed by the next values of the states.

    Raises:
        UnsupportedOperatorError: The constants alone are too large for a model.
    """
    stored = _within_protobuf(network, program, stored)
    graph = network.model.graph
    values = {value.name: value for value in (*graph.inputs, *graph.initializers.values())}
    initializers = [
        tensor_proto(name, stored[name])
        for name in (*program.parameters, *program.states, *program.constants)
        if name in stored
    ]
    fed = [_value_info(values[name], (shapes or {}).get(name)) for name in program.inputs]
    fed += [_value_info(values[name]) for name in (*program.parameters, *program.states) if name not in stored]
    nodes = [proto for node in program.nodes for proto in node_protos(node)]
    types = {name: kind for node in program.nodes for name, kind in zip(node.outputs, node.output_types)}
    outputs = dict.fromkeys([*program.outputs, *program.state_updates.values()])
    infos = [_output_info(name, types.get(name), values, keeps_shape=shapes is None) for name in outputs]
    return onnx.helper.make_model(
        onnx.helper.make_graph(nodes, network.name, fed, infos, initializers),
        opset_imports=[onnx.helper.make_opsetid(*entry) for entry in graph.opset_imports.items()],
        ir_version=network.model.ir_version,
        producer_name="deep500",
    )


def _within_protobuf(
    network: Network, program: Program, stored: Mapping[str, NDArray[Any]]
) -> Mapping[str, NDArray[Any]]:
    """Return what of the stored tensors becomes part of the model."""
    if sum(value.nbytes for value in stored.values()) <= INLINE_LIMIT:
        return stored
    constants = {name: stored[name] for name in program.constants if name in stored}
    size = sum(value.nbytes for value in constants.values())
    if size > INLINE_LIMIT:
        raise UnsupportedOperatorError(
            f"The constants of network {network.name!r} have {size:,} bytes; a model for another runtime holds at most "
            f"{INLINE_LIMIT:,}."
        )
    return constants


def tensor_proto(name: str, value: NDArray[Any]) -> onnx.TensorProto:
    """Return an array as ONNX stores it; arrays of objects are texts."""
    if value.dtype.kind == "O":
        texts: Any = [text.encode() if isinstance(text, str) else text for text in value.ravel()]
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, value.shape, texts)
    tensor: onnx.TensorProto = ir.to_proto(ir.tensor(value, name=name))
    return tensor


def _value_info(value: ir.Value, shape: Sequence[int] | None = None) -> onnx.ValueInfoProto:
    info: onnx.ValueInfoProto = ir.to_proto(value)
    del info.metadata_props[:]
    if shape is not None:
        declared = info.type.tensor_type.shape
        del declared.dim[:]
        declared.SetInParent()
        for size in shape:
            declared.dim.add().dim_value = size
    return info


def _output_info(
    name: str, kind: TensorDescriptor | None, values: Mapping[str | None, ir.Value], *, keeps_shape: bool
) -> onnx.ValueInfoProto:
    """Return what the model says of an output: nothing, where a runtime can find out better."""
    if name in values:
        return _value_info(values[name])
    if kind is None:
        return onnx.helper.make_empty_tensor_value_info(name)
    if kind.dtype == STRING:
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.STRING, None)
    dtype = ir.DataType.from_numpy(kind.numpy_dtype).value
    return onnx.helper.make_tensor_value_info(name, dtype, kind.shape if keeps_shape else None)


def node_protos(node: OperatorNode) -> Iterable[onnx.NodeProto]:
    """Yield the node as ONNX writes it, in the mode that it is in, after the constants that this takes."""
    source = node.source
    assert source is not None
    proto = onnx.NodeProto()
    proto.CopyFrom(ir.to_proto(source))
    proto.name = node.name
    inputs = list(node.inputs)
    if node.op_type == "Dropout" and not node.domain and "training_mode" in node.attributes:
        # What the mode of the network says is an attribute here and an input in ONNX.
        flag = f"{node.name}.training_mode"
        value = onnx.helper.make_tensor(flag, onnx.TensorProto.BOOL, [], [bool(node.attributes["training_mode"])])
        yield onnx.helper.make_node("Constant", [], [flag], value=value)
        inputs = [*[*inputs, ""][:2], flag]
    elif node.op_type == "BatchNormalization" and not node.domain:
        kept = [attribute for attribute in proto.attribute if attribute.name != "training_mode"]
        del proto.attribute[:]
        proto.attribute.extend(kept)
        if node.attributes.get("training_mode"):
            proto.attribute.append(onnx.helper.make_attribute("training_mode", 1))
    proto.input[:] = inputs
    proto.output[:] = node.outputs
    yield proto
