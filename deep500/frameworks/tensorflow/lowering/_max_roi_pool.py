"""Maxima over parts of regions of images."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._norms import wide_dtype
from deep500.frameworks.tensorflow.lowering._parameters import size
from deep500.networks.operator_node import OperatorNode

__all__ = ["max_roi_pool"]


@lowerings.register("MaxRoiPool", since=1)
def max_roi_pool(node: OperatorNode, x: tf.Tensor, rois: tf.Tensor) -> tf.Tensor:
    """Divide regions into equally many parts and return the maximum of each; 0 for a part without elements.

    Args:
        node: The node.
        x: Images, ``[N, C, H, W]``.
        rois: Number of the image, first column, first row, last column and last row of each region, ``[R, 5]``.

    Returns:
        ``[R, C, height, width]``, as ``pooled_shape`` says.

    Source: ONNX MaxRoiPool-22; Girshick, "Fast R-CNN", 2015.
    """
    height, width = node.attributes["pooled_shape"]
    wide = tf.cast(rois, wide_dtype(rois))
    scaled = wide[:, 1:] * node.attributes.get("spatial_scale", 1.0)
    # Halves are rounded away from zero, as C's round does.
    corners = tf.sign(scaled) * tf.floor(tf.abs(scaled) + 0.5)
    rows = _members(corners[:, 1], corners[:, 3], height, size(x, 2))
    columns = _members(corners[:, 0], corners[:, 2], width, size(x, 3))
    images = tf.gather(x, tf.cast(wide[:, 0], tf.int32))
    lowest = tf.constant(float("-inf"), x.dtype)
    parts: list[Any] = []
    for column in range(width):
        chosen = tf.where(columns[:, column, None, None, :], images, lowest)
        parts.append(tf.reduce_max(chosen, 3))
    narrow = tf.stack(parts, 3)
    parts = []
    for row in range(height):
        chosen = tf.where(rows[:, row, None, :, None], narrow, lowest)
        parts.append(tf.reduce_max(chosen, 2))
    y = tf.stack(parts, 2)
    filled = tf.reduce_any(rows, 2)[:, None, :, None] & tf.reduce_any(columns, 2)[:, None, None, :]
    y = tf.where(filled, y, tf.zeros_like(y))
    y.set_shape([rois.shape[0], x.shape[1], height, width])
    return y


def _members(first: tf.Tensor, last: tf.Tensor, parts: int, length: Any) -> tf.Tensor:
    """Return whether each row (or column) of an image belongs to each part of each region, ``[R, parts, length]``."""
    each = tf.maximum(last - first + 1, 1)[:, None] / parts
    number = tf.range(parts, dtype=first.dtype)
    begin = tf.floor(number * each) + first[:, None]
    end = tf.math.ceil((number + 1) * each) + first[:, None]
    place = tf.cast(tf.range(length), first.dtype)
    return (place >= begin[..., None]) & (place < end[..., None])
