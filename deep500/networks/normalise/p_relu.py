"""PRelu before opset 7, which had a slope for each channel instead of slopes that broadcast."""

from __future__ import annotations

import onnx
import onnx.helper
import onnx.shape_inference

__all__ = ["align_slopes"]

#: The opset from which on slopes broadcast to the input.
_BROADCASTS = 7


def align_slopes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in which the slopes of old PRelu nodes stand where broadcasting takes them for channels.

    The official version converter leaves slopes of shape ``[C]`` as they are; from opset 7 on they would be those of
    the last dimension. Source: ONNX PRelu-6 ("slope"), PRelu-7.

    Args:
        proto: A model of any opset; it is not changed.
    """
    version = next((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), _BROADCASTS)
    if version >= _BROADCASTS or not any(node.op_type == "PRelu" and not node.domain for node in proto.graph.node):
        return proto
    model = onnx.shape_inference.infer_shapes(proto)
    graph = model.graph
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.type.tensor_type.HasField("shape")
    }
    ranks.update((tensor.name, len(tensor.dims)) for tensor in graph.initializer)
    nodes = []
    for index, node in enumerate(graph.node):
        rank = ranks.get(node.input[0], 0) if node.op_type == "PRelu" and not node.domain else 0
        if rank > 2 and ranks.get(node.input[1]) == 1:
            aligned = f"{node.input[1]}.aligned{index}"
            nodes.append(onnx.helper.make_node("Unsqueeze", [node.input[1]], [aligned], axes=list(range(1, rank - 1))))
            node.input[1] = aligned
        nodes.append(node)
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)
    return model
