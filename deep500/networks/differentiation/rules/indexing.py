"""Derivatives of operators that pick and place by index."""

from __future__ import annotations

import onnx

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule
from deep500.networks.differentiation.rules._movement import numbered, scattered_back
from deep500.networks.differentiation.rules._scattering import scattering_back

__all__: list[str] = []

Gradients = list[Value | None]


@reverse_rule("Gather")
def gather(node: ReversedNode, g: Value) -> Value:
    """Every entry gets the sum over where it was picked. Source: ONNX Gather-13."""
    write, x, indices, axis = node.builder, node.input(), node.input(1), node.get("axis", 0)
    if axis == 0:
        places = write.op("Unsqueeze", _wide(indices), write.ints(-1))
        return write.op("ScatterND", write.zeros_like(x), places, g, reduction="add")
    return scattered_back(x, g, lambda numbers: write.op("Gather", numbers, indices, axis=axis))


@reverse_rule("GatherElements")
def gather_elements(node: ReversedNode, g: Value) -> Value:
    """Every element gets the sum over where it was picked. Source: ONNX GatherElements-13."""
    write = node.builder
    axis = node.get("axis", 0)
    return write.op("ScatterElements", write.zeros_like(node.input()), node.input(1), g, axis=axis, reduction="add")


@reverse_rule("GatherND")
def gather_nd(node: ReversedNode, g: Value) -> Value:
    """Every entry gets the sum over where it was picked. Source: ONNX GatherND-13."""
    write, x, indices, batch = node.builder, node.input(), node.input(1), node.get("batch_dims", 0)
    if batch == 0:
        return write.op("ScatterND", write.zeros_like(x), indices, g, reduction="add")
    return scattered_back(x, g, lambda numbers: write.op("GatherND", numbers, indices, batch_dims=batch))


@reverse_rule("ScatterElements", since=11)
def scatter_elements(node: ReversedNode, g: Value) -> Gradients:
    """The updates get what is at their places, as the reduction says. Source: ONNX ScatterElements-18."""
    write, indices, axis = node.builder, node.input(1), node.get("axis", 0)
    return scattering_back(
        node,
        g,
        lambda x: write.op("GatherElements", x, indices, axis=axis),
        lambda x, updates, reduction: write.op("ScatterElements", x, indices, updates, axis=axis, reduction=reduction),
    )


@reverse_rule("ScatterND", since=11)
def scatter_nd(node: ReversedNode, g: Value) -> Gradients:
    """The updates get what is at their places, as the reduction says. Source: ONNX ScatterND-18."""
    write, indices = node.builder, node.input(1)
    return scattering_back(
        node,
        g,
        lambda x: write.op("GatherND", x, indices),
        lambda x, updates, reduction: write.op("ScatterND", x, indices, updates, reduction=reduction),
    )


@reverse_rule("TensorScatter", since=24)
def tensor_scatter(node: ReversedNode, g: Value) -> Gradients:
    """Every element of cache and update gets what is at its place. Source: ONNX TensorScatter-24."""
    write, cache, update = node.builder, node.input(0), node.input(1)
    size = write.op("Size", cache)
    numbers = [numbered(cache), numbered(update, size)]
    settings = {"axis": node.get("axis", -2), "mode": node.get("mode", "linear")}
    places = write.op("TensorScatter", *numbers, node.optional(2), **settings)
    total = write.reshape(size + write.op("Size", update), write.ints(1))
    both = write.op("ScatterElements", write.zeros(total, g), write.flat(places), write.flat(g), axis=0)
    sizes = write.sizes(*(write.reshape(write.op("Size", value), write.ints(1)) for value in (cache, update)))
    parts = write.ops("Split", both, sizes, count=2, axis=0)
    return [write.reshape_like(part, like) for part, like in zip(parts, (cache, update))]


@reverse_rule("TopK")
def top_k(node: ReversedNode, g: Value, *_: None) -> Value:
    """The gradient at the places that were picked. Source: ONNX TopK-24."""
    write, axis = node.builder, node.get("axis", -1)
    return write.op("ScatterElements", write.zeros_like(node.input()), node.output(1), g, axis=axis, reduction="add")


@reverse_rule("Compress")
def compress(node: ReversedNode, g: Value) -> Value:
    """The gradient at the places that were kept. Source: ONNX Compress-11."""
    write, axis = node.builder, node.get("axis", None)
    return scattered_back(node.input(), g, lambda numbers: write.op("Compress", numbers, node.input(1), axis=axis))


@reverse_rule("OneHot")
def one_hot(node: ReversedNode, g: Value) -> Gradients:
    """The values get the sums over where they are. Source: ONNX OneHot-11."""
    write = node.builder
    marks = write.constant([0.0, 1.0]) if g.element_type == onnx.TensorProto.DOUBLE else None
    values = marks or write.cast_like(write.constant([0.0, 1.0]), g)
    is_on = write.op("OneHot", node.input(0), node.input(1), values, axis=node.get("axis", -1))
    sums = [write.op("ReduceSum", g * mark, keepdims=0) for mark in (1.0 - is_on, is_on)]
    return [None, None, write.op("Concat", *(write.reshape(value, write.ints(1)) for value in sums), axis=0)]


def _wide(indices: Value) -> Value:
    """Return indices as 64-bit integers, which ScatterND asks for."""
    if indices.element_type == onnx.TensorProto.INT64:
        return indices
    return indices.builder.op("Cast", indices, to=onnx.TensorProto.INT64)
