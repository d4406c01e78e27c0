"""Values between the pixels of images, as sums of weighted pixels, and what is backward of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from deep500.networks.differentiation.builder import Value

__all__ = ["Samples", "Taps", "converted", "cubic_taps", "length", "linear_taps", "whole", "wide_type"]


@dataclass(frozen=True)
class Taps:
    """The pixels along one axis that count for each position.

    Attributes:
        pixels: Their numbers, one tensor a tap; floats that may lie outside of the axis, or integers within it.
        weights: Their weights.
        slopes: The derivatives of the weights by the position.
    """

    pixels: list[Value]
    weights: list[Value]
    slopes: list[Value]

    def without_outside(self, size: Value) -> Taps:
        """Return taps of which those outside of an axis count nothing, as if zeros lay there."""
        write = size.builder
        inside = [write.op("And", pixel >= 0, pixel < size) for pixel in self.pixels]
        weights, slopes = (
            [write.where(mask, value, 0) for mask, value in zip(inside, values, strict=True)]
            for values in (self.weights, self.slopes)
        )
        return Taps([whole(pixel, size) for pixel in self.pixels], weights, slopes)


def wide_type(*values: Value) -> int:
    """Return the element type to compute in: float64 where a tensor has it, else float32."""
    kinds = {value.element_type for value in values}
    return int(onnx.TensorProto.DOUBLE if onnx.TensorProto.DOUBLE in kinds else onnx.TensorProto.FLOAT)


def converted(value: Value, element_type: int) -> Value:
    """Return a tensor with elements of another type."""
    return value if value.element_type == element_type else value.builder.op("Cast", value, to=element_type)


def length(x: Value, axis: int, like: Value) -> Value:
    """Return the size of a tensor along an axis as a number of another tensor's element type."""
    write, shape = x.builder, x.shape
    known = None if shape is None else shape[axis]
    if isinstance(known, int):
        return write.number(known, like)
    return write.cast_like(write.op("Squeeze", write.size(x, axis), write.ints(0)), like)


def whole(pixel: Value, size: Value) -> Value:
    """Return the numbers of pixels as integers within an axis; where there is no number, 0."""
    write = pixel.builder
    near = write.op("Clip", pixel, write.number(0, pixel), size - 1)
    return write.op("Cast", write.where(write.op("IsNaN", near), 0, near), to=onnx.TensorProto.INT64)


def linear_taps(position: Value) -> Taps:
    """Return the pixels on either side of positions, with weights that fall linearly with the distance."""
    write = position.builder
    low = write.op("Floor", position)
    share, one = position - low, write.ones_like(position)
    return Taps([low, low + 1], [1 - share, share], [-one, one])


def cubic_taps(position: Value, a: float) -> Taps:
    """Return the four pixels around positions, with Keys' kernel of the distances as weights."""
    write = position.builder
    first = write.op("Floor", position)
    pixels, weights, slopes = [first + tap for tap in (-1, 0, 1, 2)], [], []
    for pixel in pixels:
        t = position - pixel
        d = write.op("Abs", t)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        near_slope = (3 * (a + 2) * d - 2 * (a + 3)) * d
        far_slope = (3 * a * d - 10 * a) * d + 8 * a
        is_near, is_far = d <= 1, d < 2
        weights.append(write.where(is_near, near, write.where(is_far, far, 0)))
        slopes.append(write.op("Sign", t) * write.where(is_near, near_slope, write.where(is_far, far_slope, 0)))
    return Taps(pixels, weights, slopes)


class Samples:
    """Values of images at P positions each: ``y = sum_k w_k x_k`` over the K pixels around.

    Attributes:
        images: The images ``[B, C, S]``, of S pixels each.
    """

    def __init__(self, images: Value, taps: Sequence[Taps], sizes: Sequence[Value]) -> None:
        """Choose one tap an axis, in every way.

        Args:
            images: The images ``[B, C, S]``, in the element type of the weights.
            taps: Those along every axis ``[B, P]``, within it.
            sizes: The images' sizes, as integers.
        """
        self.images, self._write = images, images.builder
        index: list[Value] = []
        weight: list[Value] = []
        slopes: list[list[Value]] = []
        for choice in itertools.product(*(range(len(axis.pixels)) for axis in taps)):
            pairs = list(zip(choice, taps, strict=True))
            number = pairs[0][1].pixels[choice[0]]
            for (tap, axis), size in zip(pairs[1:], sizes[1:], strict=True):
                number = number * size + axis.pixels[tap]
            index.append(number)
            weight.append(_product([axis.weights[tap] for tap, axis in pairs]))
            slopes.append(
                [
                    _product([(axis.slopes if i == j else axis.weights)[tap] for j, (tap, axis) in enumerate(pairs)])
                    for i in range(len(taps))
                ]
            )
        self._count = len(index)
        self._index, self._weight = self._joined(index), self._joined(weight)
        self._slopes = [self._joined(list(along)) for along in zip(*slopes, strict=True)]

    def _joined(self, parts: list[Value]) -> Value:
        """Return what is known for each of the K pixels, ``[B, 1, K * P]``."""
        both = parts[0] if len(parts) == 1 else self._write.op("Concat", *parts, axis=1)
        return self._write.op("Unsqueeze", both, self._write.ints(1))

    @functools.cached_property
    def _places(self) -> Value:
        """The pixels' numbers for every channel, ``[B, C, K * P]``."""
        write = self._write
        return write.op("Expand", self._index, write.sizes(1, write.size(self.images, 1), 1))

    @functools.cached_property
    def _pixels(self) -> Value:
        return self._write.op("GatherElements", self.images, self._places, axis=2)

    def values(self) -> Value:
        """Return the values ``[B, C, P]``; a pixel without weight does not count, even when it is infinite."""
        write = self._write
        shares = write.where(self._weight.equals(0), 0, self._weight * self._pixels)
        split = write.op("Reshape", shares, write.ints(0, 0, self._count, -1))
        return write.total(split, [2], keepdims=0)

    def by_images(self, g: Value) -> Value:
        """Return the gradient by the images from that by the values."""
        write = self._write
        zeros = write.zeros_like(self.images)
        shares = self._repeated(g) * self._weight
        return write.op("ScatterElements", zeros, self._places, shares, axis=2, reduction="add")

    def by_positions(self, g: Value) -> list[Value]:
        """Return the gradients by the positions along every axis, ``[B, P]``."""
        write = self._write
        along = write.total(self._repeated(g) * self._pixels, [1])
        found = []
        for slope in self._slopes:
            shares = write.where(slope.equals(0), 0, slope * along)
            split = write.op("Reshape", shares, write.ints(0, self._count, -1))
            found.append(write.total(split, [1], keepdims=0))
        return found

    def _repeated(self, g: Value) -> Value:
        return g if self._count == 1 else self._write.op("Concat", *[g] * self._count, axis=2)


def _product(factors: Sequence[Value]) -> Value:
    return functools.reduce(lambda a, b: a * b, factors)
