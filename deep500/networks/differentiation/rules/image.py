"""Derivatives of operators on images."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from deep500.networks.differentiation.builder import GraphBuilder, Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule
from deep500.networks.differentiation.rules._regions import PooledBins, product_of_sizes, region_matrices
from deep500.networks.differentiation.rules._sampling import (
    Samples,
    Taps,
    converted,
    cubic_taps,
    length,
    linear_taps,
    whole,
    wide_type,
)

__all__: list[str] = []


@reverse_rule("Resize", since=18)
def resize(node: ReversedNode, g: Value) -> Value:
    """``dx = M^T g`` along every axis; M is the identity, resized. Source: ONNX Resize-19."""
    write, x = node.builder, node.input(0)
    roi, scales, sizes = (_unless_empty(node.optional(i)) for i in (1, 2, 3))
    rank = x.rank
    axes = [axis % rank for axis in node.get("axes", None) or range(rank)]
    dropped = ("axes", "extrapolation_value", "keep_aspect_ratio_policy")
    settings = {key: value for key, value in node.attributes.items() if key not in dropped}
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    crops = settings.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    decisive = None
    if policy != "stretch" and sizes is not None:
        decisive = _decisive_axis(write, write.op("Gather", write.shape(x), write.ints(*axes)), sizes, policy)
        settings["keep_aspect_ratio_policy"] = policy
    for place, axis in enumerate(axes):
        known = None if scales is None else scales.constant
        if known is not None and known[place] == 1 and not crops:
            continue
        square = _identity(write, write.size(x, axis), g)
        parts = [None if v is None else _entries(write, v, place) for v in (scales, sizes)]
        region = _entries(write, roi, place, place + len(axes)) if crops and roi is not None else None
        if decisive is None:
            resized = write.op("Resize", square, region, *parts, axes=[0], extrapolation_value=0.0, **settings)
        else:
            resized = _resized_in_ratio(square, region, parts[1], decisive, settings)
        order = [*(i for i in range(rank) if i != axis), axis]
        back = [int(i) for i in np.argsort(order)]
        g = write.transpose(write.op("MatMul", write.transpose(g, *order), resized), *back)
    return write.same_type(g, x)


def _decisive_axis(write: GraphBuilder, old: Value, sizes: Value, policy: str) -> tuple[Value, Value]:
    """Return the old and the wanted size of the axis that says by how much all of them are resized."""
    old, new = (write.op("Cast", value, to=onnx.TensorProto.DOUBLE) for value in (old, sizes))
    ratios = new / write.op("Max", old, 1.0)
    chosen = write.op("ArgMin" if policy == "not_larger" else "ArgMax", ratios, axis=0, keepdims=1)
    before, after = (write.op("Gather", value, chosen, axis=0) for value in (old, new))
    return (
        write.op("Cast", before, to=onnx.TensorProto.INT64),
        write.op("Cast", after, to=onnx.TensorProto.INT64),
    )


def _resized_in_ratio(
    square: Value, region: Value | None, size: Value | None, decisive: tuple[Value, Value], settings: dict[str, Any]
) -> Value:
    """Return the identity, its rows resized by as much as another axis is: beside it, the rows are that long."""
    write, (before, after) = square.builder, decisive
    images = write.op("Unsqueeze", square, write.ints(1, 3))  # its columns as images: ONNX Runtime resizes their axes
    long = write.op("Expand", images, write.sizes(1, 1, 1, before))
    sizes = write.op("Concat", size, after, axis=0)
    if region is not None:
        start, end = (_entries(write, region, i) for i in (0, 1))
        zero, one = (write.cast_like(write.constant([value]), region) for value in (0.0, 1.0))
        region = write.op("Concat", start, zero, end, one, axis=0)
    found = write.op("Resize", long, region, None, sizes, axes=[2, 3], extrapolation_value=0.0, **settings)
    columns = write.op("Squeeze", write.op("Gather", found, write.constant(0), axis=3), write.ints(1))
    return write.op("Transpose", columns, perm=[1, 0])


def _unless_empty(value: Value | None) -> Value | None:
    """Return an input; an empty one counts as left out."""
    return None if value is None or value.shape == (0,) else value


def _entries(write: GraphBuilder, vector: Value, *places: int) -> Value:
    return write.op("Gather", vector, write.ints(*places), axis=0)


def _identity(write: GraphBuilder, size: Value, like: Value) -> Value:
    return write.op("EyeLike", write.op("Expand", write.number(1, like), write.sizes(size, size)))


@reverse_rule("AffineGrid", since=20)
def affine_grid(node: ReversedNode, g: Value) -> Value:
    """``dtheta = G^T P`` for the positions P that the identity gives. Source: ONNX AffineGrid-20."""
    write, theta, size = node.builder, node.input(0), node.input(1)
    shape = theta.shape
    rank = None if shape is None else shape[1]
    if not isinstance(rank, int):
        raise node.refuse("of an unknown number of axes is not differentiated; declare the shape of theta")
    unit = write.cast_like(write.constant(np.eye(rank, rank + 1)[None]), g)
    one = write.op("Concat", write.ints(1), write.op("Slice", size, write.ints(1), write.ints(2 + rank)), axis=0)
    grid = write.op("AffineGrid", unit, one, align_corners=node.get("align_corners", 0))
    positions = write.op("Reshape", grid, write.ints(-1, rank))
    ones = write.ones_like(write.op("Slice", positions, write.ints(0), write.ints(1), write.ints(1)))
    whole = write.op("Concat", positions, ones, axis=1)
    flat = write.reshape(g, write.sizes(write.size(theta, 0), write.op("Shape", positions)))
    return write.op("MatMul", write.op("Transpose", flat, perm=[0, 2, 1]), whole)


@reverse_rule("GridSample", since=20)
def grid_sample(node: ReversedNode, g: Value) -> list[Value | None]:
    """Every pixel gets its weights times g; the grid gets the slopes of the weights. Source: ONNX GridSample-22."""
    write, x, grid, rank = node.builder, node.input(0), node.input(1), node.input(0).rank - 2
    kind = wide_type(x, grid)
    images, gradient = (
        write.op("Reshape", converted(value, kind), write.sizes(write.op("Shape", value, end=2), -1))
        for value in (x, g)
    )
    places = write.op("Reshape", converted(grid, kind), write.sizes(write.size(grid, 0), -1, rank))
    taps, slopes = [], []
    for axis in range(rank):
        n = write.op("Gather", places, write.constant(rank - 1 - axis), axis=2)
        found, slope = _taps(node, n, length(x, axis + 2, n))
        taps.append(found)
        slopes.append(slope)
    samples = Samples(images, taps, [write.size(x, axis + 2) for axis in range(rank)])
    by_x = write.cast_like(write.reshape_like(samples.by_images(gradient), x), x) if node.wants(0) else None
    if not node.wants(1) or node.get("mode", "linear") == "nearest":
        return [by_x, None]
    by_axis = [by * slope for by, slope in zip(samples.by_positions(gradient), slopes, strict=True)]
    columns = [write.op("Unsqueeze", by, write.ints(2)) for by in reversed(by_axis)]
    by_grid = write.reshape_like(write.op("Concat", *columns, axis=2), grid)
    return [by_x, write.cast_like(by_grid, grid)]


def _taps(node: ReversedNode, n: Value, size: Value) -> tuple[Taps, Value]:
    """Return the pixels around the positions of a grid along an axis, and the positions' derivatives by the grid."""
    write, padding, mode = node.builder, node.get("padding_mode", "zeros"), node.get("mode", "linear")
    if node.get("align_corners", 0):
        position, factor = (n + 1) / 2 * (size - 1), (size - 1) / 2
        low, high = write.number(0, n), size - 1
    else:
        position, factor = ((n + 1) * size - 1) / 2, size / 2
        low, high = write.number(-0.5, n), size - 0.5
    if mode == "nearest":
        position = write.op("Round", position)
    slope = write.ones_like(position) * factor
    outside = write.op("Or", position < low, position > high)
    if padding == "border":
        slope = write.where(outside, 0, slope)
        position = write.where(outside, write.op("Clip", position, write.number(0, n), size - 1), position)
    elif padding == "reflection":
        position, direction = _reflected(position, low, high)
        slope = slope * direction
    if mode == "nearest":
        taps = Taps([position], [write.ones_like(position)], [write.zeros_like(position)])
    else:
        taps = linear_taps(position) if mode == "linear" else cubic_taps(position, -0.75)
    if padding == "zeros":
        return taps.without_outside(size), slope
    pixels = taps.pixels if padding == "border" else [_reflected(pixel, low, high)[0] for pixel in taps.pixels]
    return Taps([whole(pixel, size) for pixel in pixels], taps.weights, taps.slopes), slope


def _reflected(position: Value, low: Value, high: Value) -> tuple[Value, Value]:
    """Return positions reflected by two borders until they lie between them, and the derivatives of that."""
    write, span = position.builder, high - low
    is_point = span <= 0
    span = write.where(is_point, 1, span)
    is_below = position < low
    beyond = write.where(is_below, low - position, position - high)
    times = write.op("Floor", beyond / span)
    rest = beyond - times * span
    is_even = (write.op("Floor", times / 2) * 2).equals(times)
    reflected = write.where(is_below.equals(is_even), low + rest, high - rest)
    inside = write.op("And", position >= low, position <= high)
    direction = write.where(write.op("And", write.op("Not", inside), is_even), write.number(-1, position), 1)
    return (
        write.where(is_point, low, write.where(inside, position, reflected)),
        write.where(is_point, 0, direction),
    )


@reverse_rule("RoiAlign", since=16)
def roi_align(node: ReversedNode, g: Value) -> Value:
    """Every pixel gets g times its share in a bin's mean, or where it is the maximum. Source: ONNX RoiAlign-22."""
    write, x, images = node.builder, node.input(0), node.input(2)
    kind = wide_type(x)
    gradient = converted(g, kind)
    if node.get("mode", "avg") == "max":
        by_x = PooledBins.of_points(node, kind).by_images(gradient, converted(x, kind))
        return write.cast_like(write.same_type(by_x, gradient), x)
    rows, columns = region_matrices(node, kind)  # [R, bins, size]
    count = write.op("Gather", write.shape(x), write.constant(0))
    batch = write.op("Unsqueeze", write.op("Range", write.constant(0), count, write.constant(1)), write.ints(1))
    chosen = write.cast_like(batch.equals(converted(images, onnx.TensorProto.INT64)), gradient)
    # One product over all regions and rows of bins, [N * H, R * bins] and [R * bins, C * W]: no image is repeated.
    along = product_of_sizes(write.size(rows, 0), write.size(rows, 1))
    batches, channels, height, width = (write.size(x, axis) for axis in range(4))
    spread = write.op("Transpose", rows, perm=[2, 0, 1]) * write.op("Unsqueeze", chosen, write.ints(1, 3))
    left = write.reshape(spread, write.sizes(product_of_sizes(batches, height), along))
    by_columns = write.op("MatMul", gradient, write.op("Unsqueeze", columns, write.ints(1)))
    moved = write.op("Transpose", by_columns, perm=[0, 2, 1, 3])
    right = write.reshape(moved, write.sizes(along, product_of_sizes(channels, width)))
    found = write.reshape(write.op("MatMul", left, right), write.sizes(batches, height, channels, width))
    return write.cast_like(write.op("Transpose", found, perm=[0, 2, 1, 3]), x)
