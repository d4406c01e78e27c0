"""What tf2onnx leaves in a model that is no ONNX, or not what TensorFlow computes."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import tensorflow as tf

from deep500.core.errors import InvalidNetworkError
from deep500.networks.normalise.defaults import nodes_of

__all__ = ["mend"]


def mend(proto: onnx.ModelProto, origin: str, known: Collection[str], captured: dict[str, Any]) -> onnx.ModelProto:
    """Return what tf2onnx made as it is meant: a valid model, the same for each conversion.

    Args:
        proto: What it made; it is changed.
        origin: How messages name the model.
        known: The names of the inputs.
        captured: The tensors of TensorFlow that the model's function holds, by the names that they have in it.

    Raises:
        InvalidNetworkError: The model has an operation that ONNX does not have, or a table.
    """
    _store_captured(proto, origin, known, captured)
    for node in nodes_of(proto.graph.node):
        if not node.domain and not onnx.defs.has(node.op_type):
            raise InvalidNetworkError(
                f"{origin} cannot be converted to ONNX: its operation {node.name!r} is TensorFlow's {node.op_type}, "
                f"for which there is no ONNX. Leave its layer out and apply it to the data."
            )
        if node.op_type == "ConvTranspose":
            _mend_padding(node)
    return _plainly_named(proto)


def _store_captured(proto: onnx.ModelProto, origin: str, known: Collection[str], captured: dict[str, Any]) -> None:
    """Store the tensors that a function holds, such as the mean of a Normalization: tf2onnx asks for them as inputs."""
    strays = [value for value in proto.graph.input if value.name not in known]
    for value in strays:
        tensor = captured.get(value.name)
        if tensor is None or not hasattr(tensor, "numpy") or tensor.dtype in (tf.resource, tf.string, tf.variant):
            raise InvalidNetworkError(
                f"{origin} cannot be converted to ONNX: {value.name.removesuffix(':0')!r} reads what is no tensor of "
                f"numbers, such as the table of a StringLookup. Leave its layer out and apply it to the data."
            )
        array = np.asarray(tensor.numpy())
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
        proto.graph.input.remove(value)


def _mend_padding(node: onnx.NodeProto) -> None:
    """Write the rows behind a transposed convolution, which tf2onnx gives as less than no padding, as ONNX does.

    TensorFlow has all of them behind; tf2onnx divides them between both ends. Source: ONNX ConvTranspose-11.
    """
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if "pads" not in attributes or min(attributes["pads"].ints, default=0) >= 0:
        return
    pads = list(attributes["pads"].ints)
    rank = len(pads) // 2
    behind = [max(-(pads[i] + pads[i + rank]), 0) for i in range(rank)]
    for i in range(rank):
        if behind[i]:
            pads[i] = pads[i + rank] = 0
    attributes["pads"].ints[:] = pads
    node.attribute.append(onnx.helper.make_attribute("output_padding", behind))


def _plainly_named(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without the addresses in memory that tf2onnx makes names from: each export is the same."""
    found: dict[str, str] = {}

    def plain(name: str) -> str:
        return re.sub(r"einsum\d{6,}", lambda m: found.setdefault(m[0], f"einsum_{len(found)}"), name)

    for tensor in proto.graph.initializer:
        tensor.name = plain(tensor.name)
    for info in proto.graph.value_info:
        info.name = plain(info.name)
    for node in proto.graph.node:
        node.name = plain(node.name)
        node.input[:] = [plain(name) for name in node.input]
        node.output[:] = [plain(name) for name in node.output]
    return proto
