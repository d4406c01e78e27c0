"""Regions of images that are divided into bins: which pixels each bin reads, and what is backward of its maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from deep500.networks.differentiation.builder import GraphBuilder, Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rules._sampling import converted, length, linear_taps, whole, wide_type

__all__ = ["PooledBins", "product_of_sizes", "region_matrices"]

_INT64 = onnx.TensorProto.INT64


@dataclass(frozen=True)
class _Points:
    """Sampling points along one axis.

    Attributes:
        position: Their positions in pixels ``[R, bins, points]``, of as many points as the largest bin has.
        exists: Which of them a region has ``[R, 1, points]``.
        count: How many a bin of each region has ``[R, 1, 1]``.
        size: The image's size along the axis, as a number of the positions' type.
        pixels: The same as a vector of one integer.
    """

    position: Value
    exists: Value
    count: Value
    size: Value
    pixels: Value

    def counting(self) -> Value:
        """Return which points count: those that exist, within the image up to a pixel beyond its edge."""
        write = self.position.builder
        near = write.op("And", self.position >= -1, self.position <= self.size)
        return write.op("And", near, self.exists)

    def inside(self) -> Value:
        """Return the positions, moved to the edge."""
        write = self.position.builder
        return write.op("Clip", self.position, write.number(0, self.position), self.size - 1)


def _points(node: ReversedNode, kind: int, axis: int) -> _Points:
    """Return the sampling points of a RoiAlign along the rows (0) or the columns (1) of its regions."""
    write, x, rois = node.builder, node.input(0), converted(node.input(1), kind)
    half_pixel = node.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    bins = int(node.get("output_width" if axis else "output_height", 1))
    # A region is x1, y1, x2, y2; rows lie along y.
    edges = rois * node.get("spatial_scale", 1.0) - (0.5 if half_pixel else 0.0)
    start, end = (_column(write, edges, i) for i in ((0, 2) if axis else (1, 3)))
    extent = end - start if half_pixel else write.op("Max", end - start, 1.0)
    ratio = int(node.get("sampling_ratio", 0))
    if ratio:
        count, most = write.number(ratio, rois), write.constant(ratio)
        count = write.op("Expand", count, write.op("Shape", extent))
    else:
        count = write.op("Max", write.op("Ceil", extent / bins), 0.0)
        most = _largest(write.op("Cast", count, to=_INT64))
    number = write.op("Cast", write.op("Range", write.constant(0), most, write.constant(1)), to=kind)
    first = write.cast_like(write.constant(np.arange(bins)[:, None]), rois)
    share = (first * count + number + 0.5) / write.op("Max", count * bins, 1.0)
    size = length(x, axis + 2, rois)
    return _Points(start + extent * share, number < count, count, size, write.size(x, axis + 2))


def _column(write: GraphBuilder, table: Value, column: int) -> Value:
    """Return a column of a table as ``[R, 1, 1]``."""
    return write.op("Unsqueeze", write.op("Gather", table, write.ints(column), axis=1), write.ints(2))


def _largest(counts: Value) -> Value:
    """Return the largest of some counts, at least 1."""
    write = counts.builder
    return write.op("ReduceMax", write.op("Concat", write.flat(counts), write.ints(1), axis=0), keepdims=0)


def region_matrices(node: ReversedNode, kind: int) -> tuple[Value, Value]:
    """Return what the mean of a bin takes of every row and of every column, ``[R, bins, size]`` each.

    The mean of a RoiAlign's bin is ``sum_hw rows_h columns_w x_hw``: its points form a grid, and so do their pixels.
    """
    write = node.builder
    rows, columns = (_shares(write, _points(node, kind, axis)) for axis in (0, 1))
    return rows, columns


def _shares(write: GraphBuilder, points: _Points) -> Value:
    pixel = write.op("Range", write.number(0, points.size), points.size, write.number(1, points.size))
    distance = write.op("Abs", write.op("Unsqueeze", points.inside(), write.ints(3)) - pixel)
    weights = write.op("Max", 1 - distance, 0.0)
    counted = write.where(write.op("Unsqueeze", points.counting(), write.ints(3)), weights, 0)
    return write.total(counted, [2], keepdims=0) / write.op("Max", points.count, 1.0)


def product_of_sizes(*sizes: Value) -> Value:
    """Return the product of sizes, each a vector of one integer, as another."""
    known = [size.constant for size in sizes]
    if all(size is not None for size in known):
        return sizes[0].builder.ints(int(np.prod([size for size in known if size is not None])))
    product = sizes[0]
    for size in sizes[1:]:
        product = product * size
    return product


@dataclass(frozen=True)
class PooledBins:
    """What the maximum of every bin is taken over: at most K weighted pixels.

    Attributes:
        index: The pixels' numbers among those of all images ``[R, rows, columns, K]``.
        exists: Which of the K there are.
        weight: Their weights; ``None`` where all are 1.
    """

    index: Value
    exists: Value
    weight: Value | None = None

    @classmethod
    def of_points(cls, node: ReversedNode, kind: int) -> PooledBins:
        """Return those of a RoiAlign: the four pixels around every sampling point, with their weights."""
        write, images = node.builder, node.input(2)
        found = []
        for axis in (0, 1):
            points = _points(node, kind, axis)
            taps, counts = linear_taps(points.inside()), points.counting()
            pixels = [whole(pixel, points.size) for pixel in taps.pixels]
            weights = [write.where(counts, weight, 0) for weight in taps.weights]
            pairs = [
                write.op("Concat", *(write.op("Unsqueeze", v, write.ints(3)) for v in both), axis=3)
                for both in (pixels, weights)
            ]
            exists = write.op("Unsqueeze", points.exists, write.ints(3))
            # [R, rows, 1, points, 1, 2, 1] and [R, 1, columns, 1, points, 1, 2]
            places = write.ints(*((1, 3, 5) if axis else (2, 4, 6)))
            found.append([write.op("Unsqueeze", value, places) for value in (*pairs, exists)])
        (row, by_row, row_exists), (column, by_column, column_exists) = found
        return cls._joined(node, images, (row, column), (row_exists, column_exists), by_row * by_column)

    @classmethod
    def of_pixels(cls, node: ReversedNode) -> PooledBins:
        """Return those of a MaxRoiPool: the pixels of every bin."""
        write, rois = node.builder, converted(node.input(1), wide_type(node.input(1)))
        scaled = rois * node.get("spatial_scale", 1.0)
        away = write.op("Floor", write.op("Abs", scaled) + 0.5) * write.op("Sign", scaled)
        corners = write.op("Cast", away, to=_INT64)
        pixels, masks = [], []
        for axis, bins in enumerate(node.attributes["pooled_shape"]):
            # A region is its image, x1, y1, x2, y2; rows lie along y.
            first, last = (_column(write, corners, i) for i in ((1, 3) if axis else (2, 4)))
            extent = write.op("Max", last - first + 1, 1)
            number, size = write.constant(np.arange(bins)[:, None]), write.size(node.input(0), axis + 2)
            edges = (first + number * extent / bins, first + ((number + 1) * extent + (bins - 1)) / bins)
            start, stop = (write.op("Min", write.op("Max", edge, 0), size) for edge in edges)
            step = write.op("Range", write.constant(0), _largest(stop - start), write.constant(1))
            pixel = start + step
            places = write.ints(*((1, 3) if axis else (2, 4)))
            pixels.append(write.op("Unsqueeze", write.op("Min", pixel, size - 1), places))
            masks.append(write.op("Unsqueeze", pixel < stop, places))
        images = write.op("Cast", write.op("Gather", rois, write.constant(0), axis=1), to=_INT64)
        return cls._joined(node, images, (pixels[0], pixels[1]), (masks[0], masks[1]), None)

    @classmethod
    def _joined(
        cls,
        node: ReversedNode,
        images: Value,
        pixels: tuple[Value, Value],
        masks: tuple[Value, Value],
        weight: Value | None,
    ) -> PooledBins:
        """Join what lies along the rows with what lies along the columns; both have the axes of the product."""
        write, x, rank = node.builder, node.input(0), pixels[0].rank
        height, width = write.size(x, 2), write.size(x, 3)
        image = write.op("Unsqueeze", converted(images, _INT64), write.ints(*range(1, rank)))
        index = (image * height + pixels[0]) * width + pixels[1]
        exists = write.op("And", *masks)
        whole_shape = write.op("Shape", index)
        lead = write.op("Shape", index, end=3)
        counted = write.op("ReduceProd", write.op("Shape", index, start=3), keepdims=1)
        shape = write.op("Concat", lead, counted, axis=0)
        parts = [None if v is None else write.reshape(write.op("Expand", v, whole_shape), shape)
                 for v in (index, exists, weight)]  # fmt: skip
        assert parts[0] is not None
        assert parts[1] is not None
        return cls(parts[0], parts[1], parts[2])

    def by_images(self, g: Value, x: Value) -> Value:
        """Return the gradient by the images: all of it goes to the first of each bin's maxima."""
        write = x.builder
        pixels = product_of_sizes(*(write.size(x, axis) for axis in (0, 2, 3)))
        shape = write.sizes(write.size(x, 1), pixels)
        order = [1, 0, 2, 3]  # channels first: no image is repeated for each of its regions
        flat = write.reshape(write.op("Transpose", x, perm=order), shape)
        values = write.op("Gather", flat, self.index, axis=1)
        if self.weight is not None:
            values = write.where(self.weight.equals(0), 0, self.weight * values)
        values = write.where(self.exists, values, float("-inf"))
        winner = write.op("ArgMax", values, axis=4, keepdims=1)
        full = write.op("Shape", values)
        index, exists = (self._won(write, value, full, winner) for value in (self.index, self.exists))
        share = write.where(exists, write.op("Transpose", g, perm=order), 0)
        if self.weight is not None:
            share = share * self._won(write, self.weight, full, winner)
        row = write.sizes(write.size(x, 1), write.op("ReduceProd", write.op("Shape", self.index, end=3), keepdims=1))
        parts = [write.reshape(value, row) for value in (index, share)]
        summed = write.op("ScatterElements", write.zeros(shape, g), *parts, axis=1, reduction="add")
        split = write.sizes(*(write.size(x, axis) for axis in order))
        return write.op("Transpose", write.reshape(summed, split), perm=order)

    @staticmethod
    def _won(write: GraphBuilder, value: Value, shape: Value, winner: Value) -> Value:
        found = write.op("GatherElements", write.op("Expand", value, shape), winner, axis=4)
        return write.op("Squeeze", found, write.ints(4))
