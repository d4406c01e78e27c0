"""Folding normalisations into the linear operators before them."""

from __future__ import annotations

import fnmatch
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.networks.network import Network
from deep500.networks.operator_node import read_node
from deep500.networks.tensor_roles import TensorRole, initializer_role
from deep500.networks.training_form import Mode
from deep500.networks.transformation import Transformation
from deep500.networks.transforms._graphs import add_stored, drop_unused, replace_nodes

__all__ = ["BatchNormalizationFolding"]

Array = NDArray[Any]

_LINEAR = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class BatchNormalizationFolding(Transformation):
    r"""Fold BatchNormalization of evaluation mode into the Conv, ConvTranspose, Gemm or MatMul before it.

    .. math:: W' = \frac{\gamma}{\sqrt{\sigma^2 + \epsilon}} W, \qquad
              b' = \frac{\gamma}{\sqrt{\sigma^2 + \epsilon}} (b - \mu) + \beta

    computed in float64 and rounded once. The new tensors are parameters with new names (``W.folded``). A product whose
    result others read, and tensors that are computed or fed, cannot be folded: such nodes are refused.
    """

    def __init__(self, nodes: str = "*") -> None:
        """Choose the nodes.

        Args:
            nodes: Pattern of the names of those that are folded, with ``*`` and ``?``.
        """
        if not isinstance(nodes, str):
            raise InvalidInputError(f"nodes was given as {nodes!r}; accepted is a pattern of names such as 'layer1*'.")
        self.nodes = nodes

    def check(self, network: Network) -> None:
        """Refuse training, a pattern that matches nothing, and every node that cannot be folded."""
        if network.mode == Mode.TRAIN.value:
            raise InvalidNetworkError(
                f"Network {network.name!r} is in training mode, where BatchNormalization depends on the batch. Call "
                f"network.eval() first."
            )
        found = self._chosen(network.model.graph)
        if not found:
            raise InvalidInputError(
                f"Network {network.name!r} has no BatchNormalization whose name matches {self.nodes!r}."
            )
        for node in found:
            reason = _obstacle(node, declared=network.mode == Mode.DECLARED.value)
            if reason:
                label = read_node(node, network.model.graph.opset_imports).label
                raise InvalidNetworkError(
                    f"{label} cannot be folded: {reason}. Leave it out with BatchNormalizationFolding(nodes=...)."
                )

    def apply(self, network: Network) -> Network:
        """Return the network with folded weights."""
        result = network.detached()
        graph = result.model.graph
        for node in self._chosen(graph):
            _fold(graph, node)
        return result

    def check_result(self, network: Network, result: Network) -> None:
        """Also check that no chosen node is left."""
        super().check_result(network, result)
        left = self._chosen(result.model.graph)
        if left:
            raise InvalidNetworkError(f"{self.name} left node {left[0].name!r} in network {network.name!r}.")

    def _chosen(self, graph: ir.Graph) -> list[ir.Node]:
        return [
            node
            for node in graph
            if node.op_type == "BatchNormalization" and not node.domain and fnmatch.fnmatchcase(_name(node), self.nodes)
        ]


def _name(node: ir.Node) -> str:
    return node.name or node.outputs[0].name or ""


def _obstacle(node: ir.Node, *, declared: bool) -> str:
    """Return why a node cannot be folded, an empty text where it can."""
    x = node.inputs[0]
    producer = None if x is None else x.producer()
    if x is None or producer is None or producer.op_type not in _LINEAR or producer.domain:
        what = "a network's input" if producer is None else f"a result of {producer.op_type}"
        return f"it normalises {what}; accepted is the result of {', '.join(_LINEAR)}"
    if x.is_graph_output() or len(x.uses()) > 1:
        return f"{x.name!r}, what it normalises, is read by others too"
    mode = node.attributes.get("training_mode")
    if declared and mode is not None and mode.as_int():
        return "its training_mode is 1"
    if any(value.name and (value.uses() or value.is_graph_output()) for value in node.outputs[1:]):
        return "its running statistics are read"
    if producer.op_type == "MatMul" and (x.shape is None or len(x.shape) != 2):
        return "its channels are the last dimension of a MatMul only if that is of rank 2"
    weights = producer.inputs[1:]
    for value in (*weights, *node.inputs[1:]):
        if value is not None and (value.const_value is None or value.is_graph_input() or value.producer() is not None):
            return f"{value.name!r} is computed or fed"
    return ""


def _fold(graph: ir.Graph, node: ir.Node) -> None:
    x = node.inputs[0]
    assert x is not None
    linear = x.producer()
    assert linear is not None
    epsilon = np.float64(np.float32(node.attributes["epsilon"].as_float())) if "epsilon" in node.attributes else 1e-5
    scale, bias, mean, variance = (_array(value) for value in node.inputs[1:5])
    factor = scale / np.sqrt(variance + epsilon)
    shift = bias - mean * factor
    weight = linear.inputs[1]
    assert weight is not None
    dtype = _dtype(weight)
    old_bias = linear.inputs[2] if len(linear.inputs) > 2 else None
    scaled = _scaled(linear, _array(weight), factor).astype(dtype)
    attributes = dict(linear.attributes)
    if linear.op_type == "Gemm":
        beta = attributes.pop("beta").as_float() if "beta" in attributes else 1.0
        offset = shift if old_bias is None else beta * _array(old_bias) * factor + shift
    else:
        offset = shift if old_bias is None else _array(old_bias) * factor + shift
    new_weight = add_stored(graph, f"{weight.name}.folded", scaled, _role(weight))
    bias_name = f"{weight.name}.folded_bias" if old_bias is None else f"{old_bias.name}.folded"
    new_bias = add_stored(graph, bias_name, offset.astype(dtype), _role(node.inputs[2]))
    inputs = [linear.inputs[0], new_weight]
    has_bias = linear.op_type != "MatMul"
    product = ir.Node(
        "", linear.op_type, [*inputs, *([new_bias] if has_bias else [])], attributes, name=linear.name, version=None
    )
    new = [product]
    if not has_bias:
        product.outputs[0].name = x.name
        product.outputs[0].type, product.outputs[0].shape = x.type, x.shape
        new.append(ir.Node("", "Add", [product.outputs[0], new_bias], name=f"{_name(node)}.shift"))
    read = [value.name or "" for value in (*linear.inputs, *node.inputs) if value is not None]
    replace_nodes(graph, node, [node, linear], new, [(node.outputs[0], new[-1].outputs[0])])
    drop_unused(graph, read)


def _scaled(linear: ir.Node, weight: Array, factor: Array) -> Array:
    """Return the weights with every output channel multiplied by its factor."""
    attributes = linear.attributes
    if linear.op_type == "Conv":
        return np.asarray(weight * factor.reshape(-1, *[1] * (weight.ndim - 1)))
    if linear.op_type == "ConvTranspose":
        # [I, O / group, ...]: the input channels of a group belong to its output channels.
        group = attributes["group"].as_int() if "group" in attributes else 1
        blocks = weight.reshape(group, weight.shape[0] // group, *weight.shape[1:])
        return np.asarray(
            (blocks * factor.reshape(group, 1, weight.shape[1], *[1] * (weight.ndim - 2))).reshape(weight.shape)
        )
    transposed = linear.op_type == "Gemm" and "transB" in attributes and attributes["transB"].as_int()
    return np.asarray(weight * (factor[:, None] if transposed else factor))


def _array(value: ir.Value | None) -> Array:
    assert value is not None
    assert value.const_value is not None
    return np.asarray(value.const_value.numpy()).astype(np.float64)


def _dtype(value: ir.Value) -> np.dtype[Any]:
    assert value.const_value is not None
    return np.asarray(value.const_value.numpy()).dtype


def _role(value: ir.Value | None) -> TensorRole:
    """Return what a folded tensor is for: what was frozen stays so."""
    assert value is not None
    return TensorRole.CONSTANT if initializer_role(value) is TensorRole.CONSTANT else TensorRole.PARAMETER
