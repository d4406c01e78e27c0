"""Where the maxima of a pooling are, and putting them back there."""

from __future__ import annotations

import itertools
from typing import Any

import tensorflow as tf

from deep500.frameworks.tensorflow._layout import channels_first_order
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._parameters import product, size, sizes, vector
from deep500.frameworks.tensorflow.lowering._windows import Windows, pad
from deep500.frameworks.tensorflow.translation import permute
from deep500.networks.operator_node import OperatorNode

__all__ = ["max_pool_indices", "max_unpool"]


def max_pool_indices(node: OperatorNode, x: tf.Tensor, windows: Windows) -> tf.Tensor:
    """Return where the maximum of each window is: its number in the image as ONNX has it, the first of equal ones.

    Args:
        node: A MaxPool; ``storage_order`` says whether the last or the first spatial dimension is counted fastest.
        x: Image, ``[N, spatial..., C]``.
        windows: Its windows.

    Returns:
        ``[N, C, spatial...]``, int64; -1 where a window has no element of the image.
    """
    best: Any = None
    index: Any = None
    found: Any = None
    padded = pad(tf.stop_gradient(x), windows)
    offsets = itertools.product(*(range(number) for number in windows.kernel))
    for offset, values in zip(offsets, windows.slices(padded), strict=True):
        place, inside = _places(windows, offset, bool(node.attributes.get("storage_order", 0)))
        if best is None:
            best, index, found = values, tf.where(inside, place, tf.constant(-1, tf.int64)), inside
            index = index + tf.zeros_like(values, tf.int64)
            continue
        better = values > best if windows.is_unpadded else inside & (~found | (values > best))
        best, index, found = tf.where(better, values, best), tf.where(better, place, index), found | inside
    index = permute(index, channels_first_order(x.shape.rank))
    found = permute(found, channels_first_order(x.shape.rank))
    batch, channels = tf.cast(size(x, 0), tf.int64), tf.cast(size(x, x.shape.rank - 1), tf.int64)
    images = tf.reshape(tf.range(batch * channels), [batch, channels, *[1] * len(windows.kernel)])
    return tf.where(found, index + images * tf.cast(product(windows.sizes), tf.int64), index)


def _places(windows: Windows, offset: tuple[int, ...], by_columns: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """Return where one element of every window is within its image, and whether it is; ``[1, outputs..., 1]``."""
    spatial = len(offset)
    place: Any = tf.zeros([1] * (spatial + 2), tf.int64)
    inside: Any = tf.ones([1] * (spatial + 2), tf.bool)
    axes = range(spatial - 1, -1, -1) if by_columns else range(spatial)
    for axis in axes:
        length = tf.cast(windows.sizes[axis], tf.int64)
        starts = tf.range(tf.cast(windows.outputs[axis], tf.int64)) * windows.strides[axis]
        first = offset[axis] * windows.dilations[axis] - tf.cast(windows.begin[axis], tf.int64)
        along = tf.reshape(starts + first, [1, *(-1 if other == axis else 1 for other in range(spatial)), 1])
        place = place * length + along
        inside = inside & (along >= 0) & (along < length)
    return place, inside


@lowerings.register("MaxUnpool", since=9)
def max_unpool(
    node: OperatorNode, x: tf.Tensor, indices: tf.Tensor, output_shape: tf.Tensor | None = None
) -> tf.Tensor:
    """Put maxima where they came from; all other elements are zeros.

    Args:
        node: The node.
        x: Maxima, ``[N, C, spatial...]``.
        indices: The number of each in the flattened result, whose sizes follow from those of ``x``.
        output_shape: Shape of the result, into whose first corner that one is put; ``[N, C, sizes...]``.

    Returns:
        ``[N, C, spatial...]``.

    Source: ONNX MaxUnpool-22.
    """
    kernel = node.attributes["kernel_shape"]
    spatial = len(kernel)
    strides = node.attributes.get("strides") or [1] * spatial
    pads = node.attributes.get("pads") or [0] * 2 * spatial
    lengths = [
        (size(x, axis + 2) - 1) * strides[axis] - pads[axis] - pads[spatial + axis] + kernel[axis]
        for axis in range(spatial)
    ]
    shape = [*sizes(x)[:2], *lengths]
    # The same maximum of several windows is put there once.
    flat = tf.tensor_scatter_nd_update(
        tf.zeros(vector([product(shape)]), x.dtype),
        tf.reshape(indices, [-1, 1]),
        tf.reshape(x, [-1]),
    )
    y = tf.reshape(flat, vector(shape))
    if output_shape is None:
        return y
    wanted = tf.cast(output_shape, tf.int64)
    y = tf.pad(y, tf.stack([tf.zeros_like(wanted), wanted - vector(shape)], 1))
    known = node.constants.get(2)
    return y if known is None else tf.ensure_shape(y, [int(number) for number in known])
