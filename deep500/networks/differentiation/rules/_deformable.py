"""What is backward of the deformable convolution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rules._regions import product_of_sizes
from deep500.networks.differentiation.rules._sampling import Samples, Taps, converted, length, linear_taps, wide_type

__all__ = ["deformable_back"]


@dataclass(frozen=True)
class _Shape:
    """The sizes of a node, for K elements of a window and P windows.

    Attributes:
        kernel: The window's spatial shape.
        batches: Images times groups of offsets.
        windows: P, as a vector of one integer.
        output: The output's spatial sizes.
    """

    kernel: list[int]
    batches: Value
    windows: Value
    output: list[Value]

    @classmethod
    def of(cls, node: ReversedNode, g: Value) -> _Shape:
        known = node.get("kernel_shape", None) or (node.input(1).shape or ())[2:]
        kernel = [size for size in known if isinstance(size, int)]
        if not kernel or len(kernel) != len(known):
            raise node.refuse("with a window of unknown size is not differentiated; declare the shape of W")
        output = [node.builder.size(g, axis + 2) for axis in range(len(kernel))]
        batches = product_of_sizes(node.builder.size(g, 0), node.builder.ints(node.get("offset_group", 1)))
        return cls(kernel, batches, product_of_sizes(*output), output)

    @property
    def elements(self) -> int:
        """K."""
        return math.prod(self.kernel)

    @property
    def samples(self) -> Value:
        """``K P``, as a vector of one integer."""
        return product_of_sizes(self.windows, self.windows.builder.ints(self.elements))


def deformable_back(node: ReversedNode, g: Value) -> list[Value | None]:
    """Return the gradients by X, W, offset, B and mask: those of a product with the values at the moved places."""
    write, x, w, offset = node.builder, node.input(0), node.input(1), node.input(2)
    kind, shape, group = wide_type(x), _Shape.of(node, g), int(node.get("group", 1))
    mask = node.optional(4)
    samples = _samples(node, shape, kind)
    maps, fan = write.size(w, 0) / group, product_of_sizes(write.size(w, 1), write.ints(shape.elements))
    by_y = converted(g, kind)
    gradient = write.reshape(by_y, write.sizes(write.size(g, 0), group, maps, shape.windows))
    matrix = write.reshape(converted(w, kind), write.sizes(group, maps, fan))
    turned = write.op("Transpose", matrix, perm=[0, 2, 1])
    channels = write.size(x, 1) / int(node.get("offset_group", 1))
    places = write.sizes(shape.batches, channels, shape.samples)
    by_columns = write.reshape(write.op("MatMul", turned, gradient), places)
    columns = values = samples.values()
    by_mask = None
    if mask is not None:
        factor = write.reshape(converted(mask, kind), write.sizes(shape.batches, 1, shape.samples))
        by_mask = write.reshape_like(write.total(by_columns * values, [1]), mask)
        columns, by_columns = values * factor, by_columns * factor
    grouped = write.reshape(columns, write.sizes(write.size(g, 0), group, fan, shape.windows))
    products = write.op("MatMul", gradient, write.op("Transpose", grouped, perm=[0, 1, 3, 2]))
    found: list[Value | None] = [
        write.reshape_like(samples.by_images(by_columns), x) if node.wants(0) else None,
        write.reshape_like(write.total(products, [0], keepdims=0), w) if node.wants(1) else None,
        _by_offset(samples, by_columns, shape, offset) if node.wants(2) else None,
        write.total(by_y, [0, *range(2, 2 + len(shape.kernel))], keepdims=0) if node.wants(3) else None,
        by_mask,
    ]
    return [None if gradient is None else write.cast_like(gradient, x) for gradient in found]


def _by_offset(samples: Samples, by_columns: Value, shape: _Shape, offset: Value) -> Value:
    write = offset.builder
    one = write.sizes(shape.batches, shape.elements, 1, shape.windows)
    parts = [write.reshape(by, one) for by in samples.by_positions(by_columns)]
    return write.reshape_like(write.op("Concat", *parts, axis=2), offset)


def _samples(node: ReversedNode, shape: _Shape, kind: int) -> Samples:
    """Return the values of X at the moved elements of all windows, ``[batches, channels, K P]``."""
    write, x, rank = node.builder, node.input(0), len(shape.kernel)
    sizes = [write.size(x, axis + 2) for axis in range(rank)]
    channels = write.size(x, 1) / int(node.get("offset_group", 1))
    images = write.reshape(converted(x, kind), write.sizes(shape.batches, channels, product_of_sizes(*sizes)))
    apart = write.sizes(shape.batches, shape.elements, rank, shape.windows)
    offset = write.reshape(converted(node.input(2), kind), apart)
    strides, dilations = (node.get(name, None) or [1] * rank for name in ("strides", "dilations"))
    pads = node.get("pads", None) or [0] * (2 * rank)
    element = np.indices(shape.kernel).reshape(rank, -1, 1)
    count = write.op("Squeeze", shape.windows, write.ints(0))
    window = write.op("Range", write.constant(0), count, write.constant(1))
    taps: list[Taps] = [Taps([], [], [])] * rank
    for axis in reversed(range(rank)):
        last = window if axis == 0 else write.op("Mod", window, shape.output[axis])
        at = last * strides[axis] + write.constant(element[axis] * dilations[axis] - pads[axis])
        moved = write.op("Gather", offset, write.constant(axis), axis=2) + write.op("Cast", at, to=kind)
        position = write.reshape(moved, write.sizes(shape.batches, shape.samples))
        taps[axis] = linear_taps(position).without_outside(length(x, axis + 2, position))
        window = window / shape.output[axis]
    return Samples(images, taps, sizes)
