"""Derivatives of convolutions."""

from __future__ import annotations

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule
from deep500.networks.differentiation.rules._deformable import deformable_back
from deep500.networks.differentiation.rules._windows import Windows, fitted, spatial_sizes
from deep500.networks.differentiation.rules.control_flow import graph_of

__all__: list[str] = []

Gradients = list[Value | None]


@reverse_rule("Conv")
def conv(node: ReversedNode, g: Value) -> Gradients:
    """``dX``: ConvTranspose of g; ``dW``: correlation of X with g; ``dB``: the sum of g. Source: ONNX Conv-22."""
    write, x, w = node.builder, node.input(0), node.input(1)
    rank, group = x.rank - 2, node.get("group", 1)
    windows = Windows.of(node, rank, spatial_sizes(w), spatial_sizes(x), spatial_sizes(node.output()))
    by_x = by_w = by_b = None
    if node.wants(0):
        full = write.op("ConvTranspose", g, w, group=group, strides=windows.strides, dilations=windows.dilations)
        by_x = write.same_type(fitted(full, -windows.before, spatial_sizes(x), rank), x)
    if node.wants(1):
        pads = windows.pads
        if pads is None:
            x = _padded(x, windows)
            pads = [0] * (2 * rank)
        by_w = _by_weight(x, g, w, windows, pads, group)
    if node.wants(2):
        by_b = write.total(g, [0, *range(2, 2 + rank)], keepdims=0)
    return [by_x, by_w, by_b]


def _padded(x: Value, windows: Windows) -> Value:
    write = x.builder
    pads = write.op("Concat", windows.before, windows.after, axis=0)
    return write.op("Pad", x, pads, None, write.ints(*range(2, 2 + windows.rank)))


def _by_weight(x: Value, g: Value, w: Value, windows: Windows, pads: list[int], group: int) -> Value:
    """Return the gradient by the weight; of an empty batch, which no runtime takes for channels, zeros."""
    write, shape = x.builder, x.shape
    if shape is not None and isinstance(shape[0], int) and shape[0] > 0:
        return _correlated(x, g, w, windows, pads, group)
    some, none = write.child(), write.child()
    inside, by_inside, weight = (some.value(value.name) for value in (x, g, w))
    made = _correlated(inside, by_inside, weight, windows, pads, group)
    graphs = {
        "then_branch": graph_of(some, "some", [], [made]),
        "else_branch": graph_of(none, "none", [], [none.zeros_like(none.value(w.name))]),
    }
    has_entries = write.op("Squeeze", write.size(x, 0), write.ints(0)) > 0
    return write.same_type(write.op("If", has_entries, **graphs), w)


def _correlated(x: Value, g: Value, w: Value, windows: Windows, pads: list[int], group: int) -> Value:
    """Correlate x with g: the batch is summed over, the channels of x are the batch, those of g the outputs.

    What the strides of the windows are, the dilations are here, and the other way round. Windows that the strides leave
    out at the end make the result too large; it is cut.
    """
    write, rank = x.builder, windows.rank
    rest = range(2, 2 + rank)
    if group == 1:
        entries = write.transpose(x, 1, 0, *rest)
    else:
        # [N, G c, ...] as [c, G N, ...]: the channels of a group are the batch, the groups stay groups.
        batch, sizes = write.size(x, 0), write.op("Shape", x, start=2)
        channels = write.size(w, 1)
        apart = write.reshape(x, write.sizes(batch, group, channels, sizes))
        turned = write.op("Transpose", apart, perm=[2, 1, 0, *(axis + 1 for axis in rest)])
        entries = write.reshape(turned, write.sizes(channels, write.ints(group) * batch, sizes))
    kernel = write.transpose(g, 1, 0, *rest)
    made = write.op(
        "Conv", entries, kernel, group=group, strides=windows.dilations, dilations=windows.strides, pads=pads
    )
    sizes = spatial_sizes(w)
    cut = fitted(made, write.ints(*[0] * rank), sizes, rank)
    return write.same_type(write.transpose(cut, 1, 0, *rest), w)


@reverse_rule("ConvTranspose")
def conv_transpose(node: ReversedNode, g: Value) -> Gradients:
    """``dX``: Conv of g; ``dW``: correlation of g with X; ``dB``: the sum of g. Source: ONNX ConvTranspose-22."""
    write, x, w = node.builder, node.input(0), node.input(1)
    rank, group = x.rank - 2, node.get("group", 1)
    strides, dilations = (list(node.get(name, None) or [1] * rank) for name in ("strides", "dilations"))
    # All that the windows reach, before the padding is cut off.
    extent = (spatial_sizes(w) - 1) * write.ints(*dilations) + 1
    whole = (spatial_sizes(x) - 1) * write.ints(*strides) + extent
    before = _cut_before(node, whole, rank)
    full = fitted(g, before, whole, rank)
    by_x = by_w = by_b = None
    if node.wants(0):
        by_x = write.same_type(write.op("Conv", full, w, group=group, strides=strides, dilations=dilations), x)
    if node.wants(1):
        zero = [0] * (2 * rank)
        windows = Windows(rank, strides, dilations, write.ints(*zero[:rank]), write.ints(*zero[:rank]), zero)
        by_w = _by_weight(full, x, w, windows, zero, group)
    if node.wants(2):
        by_b = write.total(g, [0, *range(2, 2 + rank)], keepdims=0)
    return [by_x, by_w, by_b]


def _cut_before(node: ReversedNode, whole: Value, rank: int) -> Value:
    """Return what is cut from the begin of each axis. Source: ONNX ConvTranspose-22, attribute output_shape."""
    write, auto = node.builder, node.get("auto_pad", "NOTSET")
    if auto == "VALID":
        return write.ints(*[0] * rank)
    if auto in ("NOTSET", "") and not node.get("output_shape", None):
        return write.ints(*list(node.get("pads", None) or [0] * (2 * rank))[:rank])
    extra = write.ints(*(node.get("output_padding", None) or [0] * rank))
    total = whole + extra - spatial_sizes(node.output())
    if not auto.startswith("SAME"):
        total = write.op("Max", total, 0)  # what no window reaches comes after; by SAME, on both sides
    half = (total - write.op("Mod", total, 2)) / 2  # rounded down, also where it is negative
    return half if auto == "SAME_UPPER" else total - half


@reverse_rule("DeformConv", since=19)
def deform_conv(node: ReversedNode, g: Value) -> Gradients:
    """Products of g with the values at the moved places, and with their slopes. Source: ONNX DeformConv-22."""
    return deformable_back(node, g)


@reverse_rule("Col2Im")
def col2im(node: ReversedNode, g: Value) -> Value:
    """The windows of g as columns: a convolution with one weight of 1 for each element. Source: ONNX Col2Im-18."""
    write, x, block = node.builder, node.input(), node.input(2)
    known = block.shape
    if known is None or not isinstance(known[0], int):
        raise node.refuse("of an unknown number of axes is not differentiated; declare the shape of block_shape")
    rank = known[0]
    count = write.op("ReduceProd", block, keepdims=1)
    square = write.op("Expand", write.number(1, g), write.sizes(count, count))
    diagonal = write.op("EyeLike", square)
    one = write.ints(1)
    kernel = write.reshape(diagonal, write.sizes(count, one, block))
    image = write.op("Shape", g, start=2)
    batch, channels = write.size(g, 0), write.size(g, 1)
    planes = write.reshape(g, write.sizes(batch * channels, one, image))
    settings = {name: node.get(name, None) for name in ("strides", "dilations", "pads")}
    columns = write.op("Conv", planes, kernel, **settings)
    assert rank
    return write.reshape_like(columns, x)
