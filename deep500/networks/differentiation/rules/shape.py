"""Derivatives of operators that arrange, cut and repeat."""

from __future__ import annotations

import numpy as np

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule
from deep500.networks.differentiation.rules._movement import scattered_back

__all__: list[str] = []


@reverse_rule("Identity", "Optional", "OptionalGetElement")
def identity(node: ReversedNode, g: Value) -> Value:
    """``dx = g``. Source: ONNX Identity-25, Optional-15, OptionalGetElement-18."""
    return g


@reverse_rule("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(node: ReversedNode, g: Value) -> Value:
    """``dx = g`` in the shape of x. Source: ONNX Reshape-25, Flatten-25, Squeeze-25, Unsqueeze-25."""
    return node.builder.reshape_like(g, node.input())


@reverse_rule("Transpose")
def transpose(node: ReversedNode, g: Value) -> Value:
    """The inverse permutation. Source: ONNX Transpose-25."""
    order = node.get("perm", None)
    inverse = None if order is None else [int(axis) for axis in np.argsort(order)]
    return node.builder.op("Transpose", g, perm=inverse)


@reverse_rule("Concat", since=4)
def concat(node: ReversedNode, g: Value) -> list[Value | None]:
    """Every input gets its part. Source: ONNX Concat-13."""
    write, axis = node.builder, node.attributes["axis"]
    if node.count == 1:
        return [g]
    sizes = write.sizes(*(write.size(node.input(i), axis) for i in range(node.count)))
    return list(write.ops("Split", g, sizes, count=node.count, axis=axis))


@reverse_rule("Split", since=13)
def split(node: ReversedNode, *gradients: Value | None) -> Value:
    """The parts, joined; zeros for those that nothing depends on. Source: ONNX Split-18."""
    write = node.builder
    parts = [write.zeros_like(node.output(i)) if g is None else g for i, g in enumerate(gradients)]
    return write.op("Concat", *parts, axis=node.get("axis", 0))


@reverse_rule("Expand")
def expand(node: ReversedNode, g: Value) -> Value:
    """Sums over what was repeated. Source: ONNX Expand-13."""
    return node.builder.sum_to(g, node.input())


@reverse_rule("Tile", since=6)
def tile(node: ReversedNode, g: Value) -> Value:
    """Sums over the repetitions. Source: ONNX Tile-13."""
    write, x, repeats = node.builder, node.input(), node.input(1)
    shape, last = write.shape(x), write.ints(-1)
    pairs = write.op("Concat", write.op("Unsqueeze", repeats, last), write.op("Unsqueeze", shape, last), axis=1)
    apart = write.reshape(g, write.op("Reshape", pairs, last))
    size = write.op("Size", shape)
    axes = write.op("Range", write.constant(0), size + size, write.constant(2))
    return write.reshape_like(write.total(apart, axes), x)


@reverse_rule("Slice", since=10)
def slice_(node: ReversedNode, g: Value) -> Value:
    """The gradient where the slice was, zero elsewhere. Source: ONNX Slice-13."""
    write, x = node.builder, node.input()
    steps = node.constant(4)
    given = [node.optional(i) for i in range(1, 5)]
    if node.optional(4) is not None and (steps is None or (steps != 1).any()):
        return scattered_back(x, g, lambda numbers: write.op("Slice", numbers, *given))
    start = write.op("Cast", node.input(1), to=7)
    axes = node.optional(3)
    if axes is None:
        known = start.shape[0] if start.shape else None
        axes = (
            write.ints(*range(known))
            if isinstance(known, int)
            else write.op("Range", write.constant(0), write.op("Size", start), write.constant(1))
        )
    axes = write.op("Cast", axes, to=7)
    sizes, left = (write.op("Gather", write.op("Shape", value), axes, axis=0) for value in (x, g))
    start = write.where(start < 0, start + sizes, start)
    start = write.op("Min", write.op("Max", start, 0), sizes)
    return _padded(g, start, sizes - start - left, axes, x)


def _padded(g: Value, before: Value, after: Value, axes: Value | None, like: Value) -> Value:
    write = g.builder
    pads = write.op("Concat", before, after, axis=0)
    return write.same_type(write.op("Pad", g, pads, None, axes), like)


@reverse_rule("Pad", since=11)
def pad(node: ReversedNode, g: Value) -> list[Value | None]:
    """The gradient without what was added; the value that was added gets the sum of that. Source: ONNX Pad-25."""
    write, x, mode = node.builder, node.input(), node.get("mode", "constant")
    pads, axes = node.input(1), node.optional(3)
    if mode != "constant":
        return [scattered_back(x, g, lambda numbers: write.op("Pad", numbers, pads, None, axes, mode=mode))]
    by_x = write.same_type(write.op("Pad", g, -pads, None, axes), x)
    by_value = None
    if node.wants(2):
        all_, own = (write.op("ReduceSum", value, keepdims=0) for value in (g, by_x))
        by_value = write.reshape_like(all_ - own, node.input(2))
    return [by_x, None, by_value]


@reverse_rule("Trilu")
def trilu(node: ReversedNode, g: Value) -> Value:
    """``dx = g`` in the triangle. Source: ONNX Trilu-14."""
    return node.builder.op("Trilu", g, node.optional(1), upper=node.get("upper", 1))


@reverse_rule("DepthToSpace")
def depth_to_space(node: ReversedNode, g: Value) -> Value:
    """The blocks, put back into channels. Source: ONNX DepthToSpace-13."""
    write, x, block = node.builder, node.input(), node.attributes["blocksize"]
    batch, channels, height, width = (write.size(x, axis) for axis in range(4))
    depth = channels / (block * block)
    apart = write.reshape(g, write.sizes(batch, depth, height, block, width, block))
    # The forward form is (b, block, block, c) in mode DCR, (b, c, block, block) in mode CRD.
    order = [0, 3, 5, 1, 2, 4] if node.get("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return write.reshape_like(write.op("Transpose", apart, perm=order), x)


@reverse_rule("SpaceToDepth")
def space_to_depth(node: ReversedNode, g: Value) -> Value:
    """The channels, put back into blocks. Source: ONNX SpaceToDepth-28."""
    write, x, block = node.builder, node.input(), node.attributes["blocksize"]
    batch, channels, height, width = (write.size(x, axis) for axis in range(4))
    is_depth_first = node.get("mode", "DCR") == "DCR"
    depth = [block, block, channels] if is_depth_first else [channels, block, block]
    apart = write.reshape(g, write.sizes(batch, *depth, height / block, width / block))
    order = [0, 3, 4, 1, 5, 2] if is_depth_first else [0, 1, 4, 2, 5, 3]
    return write.reshape_like(write.op("Transpose", apart, perm=order), x)


@reverse_rule("ReverseSequence")
def reverse_sequence(node: ReversedNode, g: Value) -> Value:
    """The same reversal. Source: ONNX ReverseSequence-10."""
    axes = {"batch_axis": node.get("batch_axis", 1), "time_axis": node.get("time_axis", 0)}
    return node.builder.op("ReverseSequence", g, node.input(1), **axes)
