"""Deformable convolution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._parameters import length, product, size, vector
from deep500.networks.operator_node import OperatorNode

__all__ = ["deform_conv"]


@lowerings.register("DeformConv", since=19)
def deform_conv(
    node: OperatorNode,
    x: tf.Tensor,
    w: tf.Tensor,
    offset: tf.Tensor,
    b: tf.Tensor | None = None,
    mask: tf.Tensor | None = None,
) -> tf.Tensor:
    """Convolve an image whose elements are read, by linear interpolation, at places moved by offsets.

    Args:
        node: The node.
        x: ``[N, C, spatial...]``.
        w: Kernel, ``[M, C / group, spatial...]``.
        offset: ``[N, offset groups * elements of the kernel * spatial dimensions, output sizes...]``.
        b: Bias, ``[M]``.
        mask: Factors of what is read, ``[N, offset groups * elements of the kernel, output sizes...]``.

    Returns:
        ``[N, M, output sizes...]``.

    Source: ONNX DeformConv-22.
    """
    spatial = x.shape.rank - 2
    kernel = [int(number) for number in node.attributes.get("kernel_shape") or w.shape[2:]]
    elements = math.prod(kernel)
    groups = node.attributes.get("offset_group", 1)
    wide = tf.float64 if x.dtype == tf.float64 else tf.float32
    batch, outputs = size(x, 0), [size(offset, axis) for axis in range(2, spatial + 2)]
    windows = product(outputs)
    moved = tf.reshape(tf.cast(offset, wide), vector([batch * groups, elements, spatial, windows]))
    places = moved + tf.cast(_places(node, kernel, outputs), wide)
    # [N * offset groups, pixels, channels of a group]
    group = node.attributes.get("group", 1)
    channels = w.shape[1] * group // groups
    lengths = [size(x, axis) for axis in range(2, spatial + 2)]
    pixels = tf.reshape(tf.cast(x, wide), vector([batch * groups, channels, product(lengths)]))
    read = _interpolated(tf.transpose(pixels, [0, 2, 1]), places, lengths)
    if mask is not None:
        read = read * tf.reshape(tf.cast(mask, wide), vector([batch * groups, elements, windows, 1]))
    # [N, offset groups, elements, windows, channels of a group] to [N, windows, channels, elements]
    read = tf.reshape(read, vector([batch, groups, elements, windows, channels]))
    columns = tf.reshape(tf.transpose(read, [0, 3, 1, 4, 2]), vector([batch, windows, group, w.shape[1] * elements]))
    weight = tf.reshape(tf.cast(w, wide), [group, w.shape[0] // group, w.shape[1] * elements])
    y = tf.einsum("nogi,gmi->ngmo", columns, weight)
    y = tf.reshape(y, vector([batch, w.shape[0], *outputs]))
    if b is not None:
        y = y + tf.reshape(tf.cast(b, wide), [-1, *[1] * spatial])
    y.set_shape([x.shape[0], w.shape[0], *offset.shape[2:]])
    return tf.cast(y, x.dtype)


def _places(node: OperatorNode, kernel: Sequence[int], outputs: Sequence[Any]) -> tf.Tensor:
    """Return where every element of every window is without offsets, ``[elements, dimensions, windows]``."""
    spatial = len(kernel)
    strides = node.attributes.get("strides") or [1] * spatial
    dilations = node.attributes.get("dilations") or [1] * spatial
    pads = node.attributes.get("pads") or [0] * 2 * spatial
    within = np.indices(kernel).reshape(spatial, -1)
    within = within * np.array(dilations)[:, None] - np.array(pads[:spatial])[:, None]
    starts = [length(number) * stride for number, stride in zip(outputs, strides, strict=True)]
    grid = tf.stack([tf.reshape(axis, [-1]) for axis in tf.meshgrid(*starts, indexing="ij")])
    return within.T[:, :, None] + grid[None]


def _interpolated(pixels: tf.Tensor, places: tf.Tensor, lengths: Sequence[Any]) -> tf.Tensor:
    """Read images at places between their pixels; outside of them all is zero.

    Args:
        pixels: ``[B, pixels, C]``.
        places: ``[B, elements, dimensions, windows]``.
        lengths: Sizes of the images.

    Returns:
        ``[B, elements, windows, C]``.
    """
    # What lies outside is read from one more pixel, which is zero.
    outside = product(lengths)
    pixels = tf.pad(pixels, [[0, 0], [0, 1], [0, 0]])
    corners, fractions = [], []
    for axis, extent in enumerate(lengths):
        place = places[:, :, axis]
        below = tf.floor(place)
        fractions.append(place - tf.stop_gradient(below))
        corners.append(tf.cast(tf.clip_by_value(below, -2.0, tf.cast(extent, below.dtype)), tf.int64))
    total: Any = 0
    for corner in itertools.product((0, 1), repeat=len(lengths)):
        index: Any = 0
        inside: Any = True
        weight: Any = 1
        for step, low, fraction, extent in zip(corner, corners, fractions, lengths, strict=True):
            along = low + step
            index = index * extent + along
            inside = inside & (along >= 0) & (along < extent)
            weight = weight * (fraction if step else 1 - fraction)
        values = tf.gather(pixels, tf.where(inside, index, tf.cast(outside, tf.int64)), batch_dims=1)
        total = total + values * weight[..., None]
    return total
