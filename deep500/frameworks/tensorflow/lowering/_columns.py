"""The inverse of cutting an image into the columns of a convolution."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._parameters import entries, length, product, size, vector
from deep500.networks.operator_node import OperatorNode

__all__ = ["col2im"]


@lowerings.register("Col2Im", since=18)
def col2im(node: OperatorNode, x: tf.Tensor, image_shape: tf.Tensor, block_shape: tf.Tensor) -> tf.Tensor:
    """Put blocks into an image; where they overlap they are added.

    Args:
        node: The node.
        x: ``[N, C * elements of a block, number of blocks]``.
        image_shape: Sizes of the image, ``[D]``.
        block_shape: Sizes of a block, ``[D]``.

    Returns:
        The image, ``[N, C, spatial...]``.

    Source: ONNX Col2Im-18.
    """
    image = entries(node, image_shape, "the rank of the image")
    block = entries(node, block_shape, "the rank of the image")
    spatial = len(image)
    strides = node.attributes.get("strides") or [1] * spatial
    dilations = node.attributes.get("dilations") or [1] * spatial
    pads = node.attributes.get("pads") or [0] * 2 * spatial
    # For each element of each block its place in the image, [elements of a block..., blocks...]; -1 outside.
    place: Any = tf.zeros([1] * 2 * spatial, tf.int64)
    inside: Any = tf.ones([1] * 2 * spatial, tf.bool)
    for axis in range(spatial):
        span = (block[axis] - 1) * dilations[axis] + 1
        blocks = (image[axis] + pads[axis] + pads[spatial + axis] - span) // strides[axis] + 1
        elements = length(block[axis]) * dilations[axis] - pads[axis]
        along = elements[:, None] + (length(blocks) * strides[axis])[None]
        shape: list[Any] = [1] * 2 * spatial
        shape[axis], shape[spatial + axis] = block[axis], blocks
        along = tf.reshape(along, vector(shape))
        place = place * image[axis] + along
        inside = inside & (along >= 0) & (along < image[axis])
    places = tf.reshape(tf.where(inside, place, tf.constant(-1, tf.int64)), [-1])
    batch = size(x, 0)
    columns = tf.reshape(x, vector([batch, -1, tf.size(places)]))
    # Elements with the same place are summed; those outside are left out.
    summed = tf.math.unsorted_segment_sum(tf.transpose(columns, [2, 0, 1]), places, product(image))
    channels = None
    if x.shape[1] is not None and all(isinstance(number, int) for number in block):
        channels = x.shape[1] // product(block)
    y = tf.reshape(tf.transpose(summed, [1, 2, 0]), vector([batch, -1 if channels is None else channels, *image]))
    y.set_shape([x.shape[0], channels, *(number if isinstance(number, int) else None for number in image)])
    return y
