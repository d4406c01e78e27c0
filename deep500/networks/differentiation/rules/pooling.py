"""Derivatives of pooling."""

from __future__ import annotations

from deep500.networks.differentiation.builder import GraphBuilder, Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule
from deep500.networks.differentiation.rules._movement import numbered
from deep500.networks.differentiation.rules._regions import PooledBins
from deep500.networks.differentiation.rules._sampling import converted, wide_type
from deep500.networks.differentiation.rules._windows import Windows, fitted, spatial_sizes

__all__: list[str] = []


def _spread(node: ReversedNode, g: Value, windows: Windows, kernel: list[int]) -> Value:
    """Add every window's value to all the elements that the window reads: a transposed convolution with ones."""
    write, x, rank = node.builder, node.input(), windows.rank
    one = write.ints(1)
    channels = write.op("ReduceProd", write.op("Shape", g, start=0, end=2), keepdims=1)
    planes = write.reshape(g, write.sizes(channels, one, spatial_sizes(g)))
    ones = write.op("Expand", write.number(1, g), write.ints(1, 1, *kernel))
    full = write.op("ConvTranspose", planes, ones, strides=windows.strides, dilations=windows.dilations)
    return write.reshape_like(fitted(full, -windows.before, spatial_sizes(x), rank), x)


def _windows(node: ReversedNode) -> tuple[Windows, list[int]]:
    kernel = list(node.attributes["kernel_shape"])
    x, y = node.input(), node.output()
    sizes = node.builder.ints(*kernel)
    return Windows.of(node, len(kernel), sizes, spatial_sizes(x), spatial_sizes(y)), kernel


@reverse_rule("AveragePool", since=7)
def average_pool(node: ReversedNode, g: Value) -> Value:
    """Every element gets ``g / n`` of the windows that read it. Source: ONNX AveragePool-22."""
    windows, kernel = _windows(node)
    return _spread(node, g / _counts(node, windows, kernel, g), windows, kernel)


def _counts(node: ReversedNode, windows: Windows, kernel: list[int], g: Value) -> Value:
    """Return how many elements a window counts, in a shape that broadcasts with the output."""
    write, x, y = node.builder, node.input(), node.output()
    sizes, places = spatial_sizes(x), spatial_sizes(y)
    with_padding = bool(node.get("count_include_pad", 0))
    product: Value | None = None
    for axis in range(windows.rank):
        begin, length, count = (_entry(write, vector, axis) for vector in (windows.before, sizes, places))
        low = write.constant(0) - begin if with_padding else write.constant(0)
        high = length + _entry(write, windows.after, axis) if with_padding else length
        starts = write.op("Range", write.constant(0), count, write.constant(1)) * windows.strides[axis] - begin
        taps = write.ints(*(tap * windows.dilations[axis] for tap in range(kernel[axis])))
        read = write.op("Unsqueeze", starts, write.ints(1)) + taps
        inside = write.op("And", read >= low, read < high)
        counted = write.total(write.cast_like(inside, g), [1], keepdims=0)
        shaped = write.reshape(counted, write.ints(*(-1 if i == axis else 1 for i in range(windows.rank))))
        product = shaped if product is None else product * shaped
    assert product is not None
    return product


def _entry(write: GraphBuilder, vector: Value, axis: int) -> Value:
    known = vector.constant
    return write.constant(known[axis]) if known is not None else write.op("Gather", vector, write.constant(axis))


@reverse_rule("MaxPool", since=8)
def max_pool(node: ReversedNode, g: Value, *_: None) -> Value:
    """The first largest element of each window gets the gradient. Source: ONNX MaxPool-22."""
    write, x = node.builder, node.input()
    if node.get("storage_order", 0):
        settings = {k: v for k, v in node.attributes.items() if k != "storage_order"}
        places = write.ops("MaxPool", x, count=2, **settings)[1]
    else:
        places = node.output(1)
    zeros = write.zeros(write.reshape(write.op("Size", x), write.ints(1)), g)
    summed = write.op("ScatterElements", zeros, write.flat(places), write.flat(g), axis=0, reduction="add")
    return write.reshape_like(summed, x)


@reverse_rule("LpPool", since=2)
def lp_pool(node: ReversedNode, g: Value) -> Value:
    """``dx = sign(x) |x|^(p-1)`` times the sum of ``g y^(1-p)`` over the windows. Source: ONNX LpPool-22."""
    windows, kernel = _windows(node)
    p = node.get("p", 2)
    return _by_power(node, p) * _spread(node, g * _norm_power(node, p), windows, kernel)


@reverse_rule("GlobalLpPool")
def global_lp_pool(node: ReversedNode, g: Value) -> Value:
    """``dx = sign(x) |x|^(p-1) g y^(1-p)``. Source: ONNX GlobalLpPool-22."""
    p = node.get("p", 2)
    return _by_power(node, p) * (g * _norm_power(node, p))


def _by_power(node: ReversedNode, p: int) -> Value:
    write, x = node.builder, node.input()
    if p == 2:
        return x
    sign = write.op("Sign", x)
    return sign if p == 1 else sign * write.op("Pow", write.op("Abs", x), float(p - 1))


def _norm_power(node: ReversedNode, p: int) -> Value:
    """Return ``y^(1-p)``, 0 where y is 0."""
    write, y = node.builder, node.output()
    is_zero = y.equals(0)
    return write.where(is_zero, 0, write.op("Pow", write.where(is_zero, 1, y), float(1 - p)))


@reverse_rule("GlobalAveragePool")
def global_average_pool(node: ReversedNode, g: Value) -> Value:
    """``dx = g / n``. Source: ONNX GlobalAveragePool-22."""
    write, x = node.builder, node.input()
    count = write.op("ReduceProd", spatial_sizes(x), keepdims=0)
    return write.expand_like(g / write.cast_like(count, g), x)


@reverse_rule("GlobalMaxPool")
def global_max_pool(node: ReversedNode, g: Value) -> Value:
    """The largest elements share the gradient evenly. Source: ONNX GlobalMaxPool-22."""
    write, x = node.builder, node.input()
    chosen = write.cast_like(x.equals(node.output()), g)
    axes = range(2, x.rank)
    return chosen * (g / write.total(chosen, axes))


@reverse_rule("MaxRoiPool")
def max_roi_pool(node: ReversedNode, g: Value) -> Value:
    """The first largest pixel of each bin gets the gradient. Source: ONNX MaxRoiPool-22."""
    write, x = node.builder, node.input()
    kind = wide_type(x)
    by_x = PooledBins.of_pixels(node).by_images(converted(g, kind), converted(x, kind))
    return write.cast_like(write.same_type(by_x, converted(x, kind)), x)


@reverse_rule("MaxUnpool")
def max_unpool(node: ReversedNode, g: Value) -> Value:
    """Every element gets what is at its place; the last one, of several there. Source: ONNX MaxUnpool-22."""
    write, x, places = node.builder, node.input(), node.builder.flat(node.input(1))
    kernel = node.attributes["kernel_shape"]
    rank = len(kernel)
    strides, pads = node.get("strides", None) or [1] * rank, node.get("pads", None) or [0] * (2 * rank)
    if node.optional(2) is not None:
        # Places count in the shape that the attributes give; zeros lie between it and output_shape.
        fixed = [k - begin - end for k, begin, end in zip(kernel, pads[:rank], pads[rank:], strict=True)]
        sizes = (spatial_sizes(x) - 1) * write.ints(*strides) + write.ints(*fixed)
        g = write.op("Slice", g, write.ints(*[0] * rank), sizes, write.ints(*range(2, 2 + rank)))
    flat = write.flat(g)
    numbers = write.flat(numbered(x))
    none = write.op("Expand", write.constant(-1), write.op("Shape", flat))
    owners = write.op("ScatterElements", none, places, numbers, axis=0, reduction="max")
    stays = write.op("Gather", owners, places, axis=0).equals(numbers)
    return write.reshape_like(write.where(stays, write.op("Gather", flat, places, axis=0), 0), x)
