"""One node of a network as a network of its own, fed with the values that it has in the whole one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.flops import node_flops
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode
from deep500.networks.program_model import node_protos, tensor_proto
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = [
    "LOSS",
    "draws_numbers",
    "is_floating",
    "node_network",
    "reduction_length",
    "with_intermediates",
    "with_values",
]

#: Name of the loss that a node's outputs are summed to.
LOSS = "deep500.loss"

#: Shortest reduction that is assumed: elementary functions are not rounded correctly either.
_LEAST_LENGTH = 16

_RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")

Values = Mapping[str, Any]


def draws_numbers(node: OperatorNode) -> bool:
    """Whether two runs of a node differ, so that there is nothing to compare."""
    if node.domain:
        return False
    is_training = bool(node.attributes.get("training_mode", len(node.inputs) > 2))
    return node.op_type in _RANDOM or (node.op_type == "Dropout" and is_training)


def is_floating(value: Any) -> bool:
    """Whether a value is a tensor that can be differentiated by."""
    return isinstance(value, np.ndarray) and value.dtype.name in ("float16", "bfloat16", "float32", "float64")


def with_intermediates(network: Network) -> Network:
    """Return the network with every tensor that its nodes compute among the outputs, in their order."""
    program = network.program(frozenset(network.inputs))
    wanted = [
        name
        for node in program.nodes
        for index, name in enumerate(node.outputs)
        if name and (index == 0 or node.op_type != "BatchNormalization")
    ]
    model = network.model.clone()
    values = {value.name: value for node in model.graph for value in node.outputs}
    present = {value.name for value in model.graph.outputs}
    for name in wanted:
        value = values.get(name)
        if (
            value is not None
            and name not in present
            and isinstance(value.type, ir.TensorType)
            and value.shape is not None
        ):
            model.graph.outputs.append(value)
    return network.with_model(model)


def node_network(
    network: Network, node: OperatorNode, values: Values, seed: int | None = None
) -> tuple[Network, dict[str, Any]]:
    """Return a network of one node, and what to feed it with.

    Args:
        network: The whole network; parameters and constants stay such.
        node: The node.
        values: What the node reads and computes in the whole network, by name.
        seed: Where it is given, floating inputs are parameters, and a loss, the sum of the floating outputs with random
            weights, is added.

    Raises:
        InvalidNetworkError: The node's values are no tensors.
    """
    names = list(dict.fromkeys(name for name in (*node.inputs, *node.captured) if name))
    outputs = [name for name in node.outputs if name in values]
    for name in (*names, *outputs):
        if not isinstance(values.get(name), np.ndarray):
            raise InvalidNetworkError(f"{node.label} has values that are no tensors.")
    nodes = list(node_protos(node))
    infos = [_value_info(name, values[name]) for name in outputs]
    stored = {name: _role(network, name) for name in names}
    by_float = {name for name in names if seed is not None and is_floating(values[name])}
    feeds = {name: values[name] for name in names if stored[name] is None and name not in by_float}
    initializers = {name: (values[name], stored[name]) for name in names if name not in feeds}
    if seed is not None:
        floating = [name for name in outputs if is_floating(values[name])]
        if not floating:
            raise InvalidNetworkError(f"{node.label} has no floating outputs.")
        loss_nodes, weights = _loss(floating, values, seed)
        nodes += loss_nodes
        initializers |= {name: (weight, TensorRole.CONSTANT) for name, weight in weights.items()}
        infos.append(_value_info(LOSS, np.zeros((), values[floating[0]].dtype)))
    made = ir.from_proto(_model(network, nodes, feeds, infos, initializers))
    for name, (_, role) in initializers.items():
        if role is not None:
            made.graph.initializers[name].metadata_props[ROLE_KEY] = role.value
    return Network(made).as_declared(), feeds


def _model(
    network: Network,
    nodes: Sequence[onnx.NodeProto],
    feeds: Values,
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Mapping[str, tuple[NDArray[Any], TensorRole | None]],
) -> onnx.ModelProto:
    fed = [_value_info(name, value) for name, value in feeds.items()]
    stored = [tensor_proto(name, value) for name, (value, _) in initializers.items()]
    return onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "node", fed, outputs, stored),
        opset_imports=[onnx.helper.make_opsetid(*entry) for entry in network.model.graph.opset_imports.items()],
        ir_version=network.model.ir_version,
    )


def with_values(node: OperatorNode, values: Values) -> OperatorNode:
    """Return a node with dtypes and shapes of the values that it reads and computes."""
    known = {name: TensorDescriptor(v.dtype.name, v.shape) for name, v in values.items() if _has_numbers(v)}
    return dataclasses.replace(
        node,
        input_types=tuple(known.get(name) for name in node.inputs),
        output_types=tuple(known.get(name) for name in node.outputs),
    )


def reduction_length(node: OperatorNode, values: Values) -> int:
    """Return how many terms the longest sum of a node has, or an upper bound."""
    own = {name: values[name] for name in (*node.inputs, *node.outputs) if _has_numbers(values.get(name))}
    count: int = max((own[name].size for name in node.outputs if name in own), default=0)
    try:
        flops = node_flops(with_values(node, own))
    except InvalidNetworkError:
        flops = None
    if flops is not None and count:
        return max(_LEAST_LENGTH, math.ceil(flops / count))
    return int(max([_LEAST_LENGTH, *(value.size for value in own.values())]))


def _has_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind not in "OUST"


def _role(network: Network, name: str) -> TensorRole | None:
    if name in network.parameters:
        return TensorRole.PARAMETER
    if name in network.states:
        return TensorRole.STATE
    return TensorRole.CONSTANT if name in network.constants else None


def _value_info(name: str, value: NDArray[Any]) -> onnx.ValueInfoProto:
    if value.dtype.kind in "OUST":
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.STRING, value.shape)
    return onnx.helper.make_tensor_value_info(name, ir.DataType.from_numpy(value.dtype).value, value.shape)


def _loss(outputs: Sequence[str], values: Values, seed: int) -> tuple[list[onnx.NodeProto], dict[str, NDArray[Any]]]:
    nodes, weights, sums = [], {}, []
    dtype = values[outputs[0]].dtype
    for index, name in enumerate(outputs):
        weight = f"{LOSS}.weight{index}"
        drawn = random_stream(seed, "weight", index).standard_normal(values[name].shape)
        weights[weight] = np.asarray(drawn).astype(values[name].dtype)
        nodes.append(onnx.helper.make_node("Mul", [name, weight], [f"{LOSS}.product{index}"]))
        total = f"{LOSS}.sum{index}"
        nodes.append(onnx.helper.make_node("ReduceSum", [f"{LOSS}.product{index}"], [f"{total}.own"], keepdims=0))
        nodes.append(onnx.helper.make_node("Cast", [f"{total}.own"], [total], to=ir.DataType.from_numpy(dtype).value))
        sums.append(total)
    return [*nodes, onnx.helper.make_node("Sum", sums, [LOSS])], weights
