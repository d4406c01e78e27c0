"""ONNX' Gradient, an operator that stands for the derivative of other nodes, replaced by nodes that compute it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx.compose
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference
import onnx.utils

from deep500.core.errors import InvalidNetworkError
from deep500.core.texts import message_of
from deep500.networks.differentiation.differentiate import differentiated

__all__ = ["expand_gradients"]

_DOMAIN, _NAME = "ai.onnx.preview.training", "Gradient"


def expand_gradients(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace every Gradient node of a graph.

    ``Gradient(xs, zs; y)`` is the derivative of the tensor y by each of xs, where y is computed by the nodes between
    them and the values that the node is given stand in the place of xs and zs. A y of several elements is summed.
    Source: ONNX ai.onnx.preview.training Gradient-1.

    Args:
        model: A model that the checker accepts.

    Raises:
        InvalidNetworkError: A node names tensors that the graph does not have.
        UnsupportedOperatorError: A node between has no derivative.
    """
    while any(_is_gradient(node) for node in model.graph.node):
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        index = next(i for i, node in enumerate(model.graph.node) if _is_gradient(node))
        node = model.graph.node[index]
        replacement, tensors = _replacement(model, node, prefix=f"{node.name or _NAME}_{index}.")
        nodes = [*model.graph.node[:index], *replacement, *model.graph.node[index + 1 :]]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        model.graph.initializer.extend(tensors)
    return model


def _is_gradient(node: onnx.NodeProto) -> bool:
    return node.domain == _DOMAIN and node.op_type == _NAME


def _replacement(
    model: onnx.ModelProto, node: onnx.NodeProto, prefix: str
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    xs, zs = (_texts(attributes.get(name, ())) for name in ("xs", "zs"))
    y = _texts([attributes["y"]])[0]
    try:
        between = onnx.utils.Extractor(model).extract_model([*xs, *zs], [y])
    except Exception as error:
        # The extractor reports tensors that it does not find by exceptions of several types.
        raise InvalidNetworkError(
            f"Gradient {node.name!r} names tensors {[*xs, *zs, y]} that the graph cannot compute from each other: "
            f"{message_of(error)}"
        ) from error
    derived, gradients = differentiated(between, xs, y, f"Gradient {node.name!r}")
    # The graph between is computed once more, from the values that the node is given.
    derived = onnx.compose.add_prefix(derived, prefix)
    given = dict(zip([*xs, *zs], node.input, strict=True))
    names = {f"{prefix}{name}": value for name, value in given.items()}
    for name, result in zip(xs, node.output, strict=False):
        if result:
            names[f"{prefix}{gradients[name]}"] = result
    nodes = []
    for inner in derived.graph.node:
        renamed = onnx.NodeProto()
        renamed.CopyFrom(inner)
        renamed.input[:] = [names.get(name, name) for name in inner.input]
        renamed.output[:] = [names.get(name, name) for name in inner.output]
        nodes.append(renamed)
    return nodes, list(derived.graph.initializer)


def _texts(values: Sequence[bytes | str]) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else value for value in values]
