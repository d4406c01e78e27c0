"""Derivatives of normalisation."""

from __future__ import annotations

import onnx

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import defined_by_others, reverse_rule

__all__: list[str] = []

Gradients = list[Value | None]


@reverse_rule("BatchNormalization", since=9)
def batch_normalization(node: ReversedNode, g: Value | None, *by_running: Value | None) -> Gradients:
    """With the stored statistics, or in training with those of the batch. Source: ONNX BatchNormalization-15."""
    write, x = node.builder, node.input(0)
    rank = x.rank
    axes = [axis for axis in range(rank) if axis != 1]
    if node.get("training_mode", 0):
        return _trained(node, g, list(by_running), axes)
    assert g is not None
    scale, mean, variance = (_along_channels(node.input(i), x) for i in (1, 3, 4))
    inverse = 1.0 / write.op("Sqrt", variance + node.get("epsilon", 1e-5))
    factor = scale * inverse
    by_x = g * factor
    products = g * (x - mean)
    by_scale = write.total(products * inverse, axes, keepdims=0) if node.wants(1) else None
    by_bias = write.total(g, axes, keepdims=0) if node.wants(2) else None
    by_mean = -write.total(by_x, axes, keepdims=0) if node.wants(3) else None
    by_variance = None
    if node.wants(4):
        by_variance = write.total(products * factor * inverse.square(), axes, keepdims=0) * -0.5
    found: Gradients = [by_x, by_scale, by_bias, by_mean, by_variance]
    return [None if v is None else write.cast_like(v, node.input(i)) for i, v in enumerate(found)]


def _along_channels(vector: Value, x: Value) -> Value:
    """Return a vector with an entry for each channel in a shape that broadcasts with x."""
    write = x.builder
    return write.reshape(write.cast_like(vector, x), write.ints(1, -1, *[1] * (x.rank - 2)))


def _trained(node: ReversedNode, g: Value | None, by_running: Gradients, axes: list[int]) -> Gradients:
    """``dx = s / d (g - mean(g) - n mean(g n))`` for the normalised n, the scale s and the deviation d."""
    write, x = node.builder, node.input(0)
    momentum = node.get("momentum", 0.9)
    over = write.ints(*axes)
    mean = write.op("ReduceMean", x, over)
    centred = x - mean
    inverse = 1.0 / write.op("Sqrt", write.op("ReduceMean", centred.square(), over) + node.get("epsilon", 1e-5))
    by_x = by_scale = by_bias = None
    if g is not None:
        normal = centred * inverse
        products = g * normal
        middle = g - write.op("ReduceMean", g, over) - normal * write.op("ReduceMean", products, over)
        by_x = middle * (_along_channels(node.input(1), x) * inverse)
        by_scale = write.total(products, axes, keepdims=0)
        by_bias = write.total(g, axes, keepdims=0)
    kept: Gradients = [None, None]
    for index, gradient in enumerate(by_running[:2]):
        if gradient is None:
            continue
        # The running statistics are means of the old ones and those of the batch.
        kept[index] = gradient * momentum
        batch = _along_channels(gradient * (1.0 - momentum), x)
        count = write.cast_like(write.op("Size", x), x) / write.cast_like(write.op("Size", mean), x)
        part = batch / count if index == 0 else centred * (batch * 2.0 / count)
        by_x = write.expand_like(part, x) if by_x is None else by_x + part
    found: Gradients = [by_x, by_scale, by_bias, *kept]
    return [None if v is None else write.cast_like(v, node.input(i)) for i, v in enumerate(found)]


@defined_by_others("InstanceNormalization", since=6)
def instance_normalization(node: ReversedNode) -> Value:
    """``y = s (x - mean) / sqrt(variance + epsilon) + b``. Source: ONNX InstanceNormalization-22."""
    write, x = node.builder, node.input()
    axes = write.ints(*range(2, x.rank))
    centred = x - write.op("ReduceMean", x, axes)
    deviation = write.op("Sqrt", write.op("ReduceMean", centred.square(), axes) + node.get("epsilon", 1e-5))
    shape = write.ints(1, -1, *[1] * (x.rank - 2))
    scale, bias = (write.op("Reshape", node.input(i), shape) for i in (1, 2))
    return centred / deviation * scale + bias


@defined_by_others("LpNormalization")
def lp_normalization(node: ReversedNode) -> Value:
    """``y = x / ||x||_p``, 0 where the norm is. Source: ONNX LpNormalization-22."""
    write, x = node.builder, node.input()
    axes = write.ints(node.get("axis", -1))
    norm = write.op(f"ReduceL{node.get('p', 2)}", x, axes)
    return x / write.where(norm.equals(0), 1, norm)


@defined_by_others("LRN")
def local_response_normalization(node: ReversedNode) -> Value:
    """``y = x / (bias + alpha / size * sum of squares of near channels)^beta``. Source: ONNX LRN-13."""
    write, x, size = node.builder, node.input(), node.attributes["size"]
    before = (size - 1) // 2
    one = write.ints(1)
    squares = write.op("Pad", x.square(), write.ints(before, size - 1 - before), None, one)
    count = write.size(x, 1)
    parts = [write.op("Slice", squares, write.ints(i), count + i, one) for i in range(size)]
    total = parts[0] if size == 1 else write.op("Sum", *parts)
    base = total * (node.get("alpha", 1e-4) / size) + node.get("bias", 1.0)
    return x / write.op("Pow", base, node.get("beta", 0.75))


@defined_by_others("LayerNormalization", since=17)
def layer_normalization(node: ReversedNode) -> tuple[Value, ...]:
    """``y = s (x - mean) / sqrt(variance + epsilon) + b`` over the last axes. Source: ONNX LayerNormalization-17."""
    write, x, bias = node.builder, node.input(), node.optional(2)
    wide, axes = _wide(node)
    mean = write.op("ReduceMean", wide, axes)
    centred = wide - mean
    variance = write.op("ReduceMean", centred.square(), axes)
    inverse = write.op("Reciprocal", write.op("Sqrt", variance + node.get("epsilon", 1e-5)))
    y = write.cast_like(centred * inverse, x) * node.input(1)
    return y if bias is None else y + bias, mean, inverse


@defined_by_others("RMSNormalization", since=23)
def rms_normalization(node: ReversedNode) -> Value:
    """``y = s x / sqrt(mean(x^2) + epsilon)`` over the last axes. Source: ONNX RMSNormalization-23."""
    write, x = node.builder, node.input()
    wide, axes = _wide(node)
    root = write.op("Sqrt", write.op("ReduceMean", wide.square(), axes) + node.get("epsilon", 1e-5))
    normal = write.cast_like(wide / root, x)
    return write.cast_like(normal, node.input(1)) * node.input(1)


def _wide(node: ReversedNode) -> tuple[Value, Value]:
    """Return the input in the element type to compute in, and the axes from the attribute ``axis`` on."""
    write, x = node.builder, node.input()
    axis, narrow = node.get("axis", -1), (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    wide = x
    if node.get("stash_type", 1) == onnx.TensorProto.FLOAT and x.element_type in narrow:
        wide = write.op("Cast", x, to=onnx.TensorProto.FLOAT)
    axes = range(axis, 0) if axis < 0 else range(axis, x.rank)
    return wide, write.ints(*axes)
