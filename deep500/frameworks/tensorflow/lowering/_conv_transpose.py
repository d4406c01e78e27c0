"""Transposed convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._parameters import maximum, size, vector
from deep500.frameworks.tensorflow.lowering._sums import summed_in_float32
from deep500.frameworks.tensorflow.lowering._tensors import is_empty, nothing
from deep500.frameworks.tensorflow.lowering._windows import spread
from deep500.networks.operator_node import OperatorNode

__all__ = ["conv_transpose"]


@dataclass(frozen=True)
class _Extent:
    """Which part of the whole result is wanted along one dimension.

    Attributes:
        stride: Distance between the windows of neighbouring elements.
        full: Size of all windows together.
        begin: How many elements are left out at the beginning; negative where zeros are added.
        end: How many elements are left out at the end; as ``begin``.
        output: Size of what is wanted.
    """

    stride: int
    full: Any
    begin: Any
    end: Any
    output: Any


@lowerings.register("ConvTranspose", since=1)
def conv_transpose(node: OperatorNode, x: tf.Tensor, w: tf.Tensor, b: tf.Tensor | None = None) -> tf.Tensor:
    """Add, for every element of an image, the kernel times that element to the window that belongs to it.

    Args:
        node: The node.
        x: ``[N, C, spatial...]`` with one to three spatial dimensions.
        w: Kernel, ``[C, M / group, spatial...]``.
        b: Bias, ``[M]``.

    Returns:
        ``[N, spatial..., M]``.

    Source: ONNX ConvTranspose-22.
    """
    rank, group = x.shape.rank, node.attributes.get("group", 1)
    declared = node.attributes.get("kernel_shape") or [None] * (rank - 2)
    kernel = [known or number for known, number in zip(w.shape[:-2], declared, strict=True)]
    extents = _extents(node, [size(x, axis) for axis in range(1, rank - 1)], kernel)
    outputs = [extent.output for extent in extents]
    channels = w.shape[-2] * group
    if any(isinstance(output, int) and output < 1 for output in outputs):
        raise OperatorError(f"{node.label} has a result of sizes {outputs}; pads leave out more than there is.")
    if is_empty(x) or is_empty(w):
        return nothing([size(x, 0), *outputs, channels], x, w, *([] if b is None else [b]))
    image, weight = x, spread(w, node.attributes.get("dilations") or [1] * (rank - 2))
    if rank == 3:
        # TensorFlow's one-dimensional convolution is its two-dimensional one over images of height 1.
        image, weight = tf.expand_dims(image, 1), tf.expand_dims(weight, 0)
        extents = [_Extent(1, 1, 0, 0, 1), *extents]
    y = summed_in_float32(lambda image, weight: _grouped(image, weight, extents, group), image, weight)
    if rank == 3:
        y = tf.squeeze(y, 1)
    known = [output if isinstance(output, int) else None for output in outputs]
    y.set_shape([x.shape[0], *known, channels])
    if b is not None:
        y = tf.nn.bias_add(y, b)
    return y


def _extents(node: OperatorNode, sizes: Sequence[Any], kernel: Sequence[int]) -> list[_Extent]:
    spatial = len(sizes)
    attributes = node.attributes
    strides = attributes.get("strides") or [1] * spatial
    dilations = attributes.get("dilations") or [1] * spatial
    added = attributes.get("output_padding") or [0] * spatial
    pads = attributes.get("pads") or [0] * 2 * spatial
    automatic = attributes.get("auto_pad", "NOTSET")
    wanted = (attributes.get("output_shape") or [None] * spatial)[-spatial:]
    extents = []
    for axis, (number, stride) in enumerate(zip(sizes, strides, strict=True)):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        full = (number - 1) * stride + span
        begin, end = pads[axis], pads[spatial + axis] - added[axis]
        if automatic == "VALID":
            begin, end = 0, -added[axis]
        if wanted[axis] is not None:
            begin = _begin(full + added[axis] - wanted[axis], automatic)
            end = full - begin - wanted[axis]
        elif automatic.startswith("SAME"):
            begin = _begin(span + added[axis] - stride, automatic)
            end = span - stride - begin
        extents.append(_Extent(stride, full, begin, end, full - begin - end))
    return extents


def _begin(total: Any, automatic: str) -> Any:
    """Return the part of a padding that comes first; where it is not SAME's, there is no negative one."""
    if not automatic.startswith("SAME"):
        total = maximum(total, 0)
    return total // 2 if automatic == "SAME_UPPER" else total - total // 2


def _grouped(x: tf.Tensor, w: tf.Tensor, extents: Sequence[_Extent], group: int) -> tf.Tensor:
    strides = [extent.stride for extent in extents]
    if group == 1:
        return _transposed(x, w, extents)
    if w.shape[-2] == 1 and len(extents) == 2 and strides[0] == strides[1]:
        kernel = tf.reshape(w, [*w.shape[:2], group, w.shape[-1] // group])
        shape = tf.cast(vector([size(x, 0), *(extent.full for extent in extents), group]), tf.int32)
        y = tf.nn.depthwise_conv2d_backprop_input(shape, kernel, x, (1, *strides, 1), "VALID")
        return _cropped(y, extents)
    # TensorFlow's processor kernels know no groups here.
    parts = zip(tf.split(x, group, -1), tf.split(w, group, -1), strict=True)
    return tf.concat([_transposed(part, kernel, extents) for part, kernel in parts], -1)


def _transposed(x: tf.Tensor, w: tf.Tensor, extents: Sequence[_Extent]) -> tf.Tensor:
    """Convolve an image ``[N, spatial..., I]`` with a kernel ``[spatial..., O, I]``."""
    planar = len(extents) == 2
    operation = tf.nn.conv2d_transpose if planar else tf.nn.conv3d_transpose
    strides = (1, *(extent.stride for extent in extents), 1)
    pairs = [[extent.begin, extent.end] for extent in extents]
    if planar and all(isinstance(number, int) and number >= 0 for pair in pairs for number in pair):
        shape = tf.cast(vector([size(x, 0), *(extent.output for extent in extents), w.shape[-2]]), tf.int32)
        return operation(x, w, shape, strides, [[0, 0], *pairs, [0, 0]])
    shape = tf.cast(vector([size(x, 0), *(extent.full for extent in extents), w.shape[-2]]), tf.int32)
    return _cropped(operation(x, w, shape, strides, "VALID"), extents)


def _cropped(y: tf.Tensor, extents: Sequence[_Extent]) -> tf.Tensor:
    """Return the wanted part of a whole result ``[N, spatial..., O]``, with zeros where that has no elements."""
    missing = [[maximum(-number, 0) for number in (extent.begin, extent.end)] for extent in extents]
    if any(not isinstance(number, int) or number for pair in missing for number in pair):
        y = tf.pad(y, [[0, 0], *missing, [0, 0]])
    first = [maximum(extent.begin, 0) for extent in extents]
    cuts = tuple(slice(begin, begin + extent.output) for begin, extent in zip(first, extents, strict=True))
    return y[(slice(None), *cuts, slice(None))]
