"""Operators that move, repeat or leave out elements without changing them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow._known import needed_value
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._padding import crop_and_pad, pad_by
from deep500.frameworks.tensorflow.lowering._parameters import (
    Size,
    declared,
    entries,
    length,
    maximum,
    minimum,
    nonnegative_axis,
    product,
    scalar,
    size,
    sizes,
    static,
    vector,
)
from deep500.frameworks.tensorflow.lowering._traced_entries import remaining_size
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "center_crop_pad",
    "concat",
    "depth_to_space",
    "element_count",
    "expand",
    "flatten",
    "pad",
    "reshape",
    "reverse_sequence",
    "shape_of",
    "slice_axes",
    "space_to_depth",
    "split",
    "squeeze",
    "tile",
    "transpose",
    "triangle",
    "unsqueeze",
]


@lowerings.register("Flatten", since=1)
def flatten(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return a matrix: the sizes before an axis are multiplied, and those from it on. Source: ONNX Flatten-25."""
    axis = nonnegative_axis(node, x.shape.rank, 1)
    own = sizes(x)
    return tf.reshape(x, _merged(product(own[:axis]), product(own[axis:])))


@lowerings.register("Reshape", since=5)
def reshape(node: OperatorNode, x: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Return x in another shape; 0 keeps a size (unless ``allowzero``), -1 is what remains.

    Source: ONNX Reshape-25.
    """
    wanted = entries(node, shape, "the number of dimensions of its output")
    if not node.attributes.get("allowzero", 0):
        own = sizes(x)
        wanted = [_kept(entry, own[axis]) if axis < len(own) else entry for axis, entry in enumerate(wanted)]
    if not wanted:
        return tf.reshape(x, [])
    unknown = [index for index, entry in enumerate(wanted) if not isinstance(entry, int)]
    if unknown and -1 in (entry for entry in wanted if isinstance(entry, int)):
        # Once the -1 has become a number, another size may be what remains.
        remaining = remaining_size(x, shape, not node.attributes.get("allowzero", 0))
        wanted = [remaining if remaining and isinstance(entry, int) and entry == -1 else entry for entry in wanted]
    if len(unknown) == 1 and all(entry > 0 for entry in wanted if isinstance(entry, int)):
        wanted[unknown[0]] = -1
    return declared(node, tf.reshape(x, wanted if _are_known(wanted) else vector(wanted)))


@lowerings.register("Transpose", since=1)
def transpose(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return x with its dimensions in another order, reversed by default. Source: ONNX Transpose-25."""
    return tf.transpose(x, node.attributes.get("perm"))


@lowerings.register("Concat", since=4)
def concat(node: OperatorNode, *tensors: tf.Tensor) -> tf.Tensor:
    """Return the tensors behind each other along an axis. Source: ONNX Concat-13."""
    return tf.concat(tensors, node.attributes["axis"])


@lowerings.register("Squeeze", since=13)
def squeeze(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor | None = None) -> tf.Tensor:
    """Return x without some dimensions of size 1, all by default. Source: ONNX Squeeze-25."""
    if axes is None:
        return declared(node, tf.squeeze(x))
    given = static(axes)
    if given is not None:
        # For TensorFlow an empty list of axes means all of them.
        return tf.squeeze(x, [int(axis) for axis in given.ravel()]) if given.size else tf.identity(x)
    rank = x.shape.rank
    dropped = tf.reshape(axes, [-1]) % rank
    kept = tf.boolean_mask(tf.shape(x), ~tf.reduce_any(tf.range(rank, dtype=axes.dtype) == dropped[:, None], 0))
    if axes.shape.num_elements() is not None:
        kept.set_shape([rank - axes.shape.num_elements()])
    return declared(node, tf.reshape(x, kept))


@lowerings.register("Unsqueeze", since=13)
def unsqueeze(node: OperatorNode, x: tf.Tensor, axes: tf.Tensor) -> tf.Tensor:
    """Return x with dimensions of size 1 at some axes of the result. Source: ONNX Unsqueeze-25."""
    given = static(axes)
    if given is None and axes.shape.num_elements() is None:
        given = needed_value(node, axes, "the number of dimensions of its output")
    if given is None:
        rank = x.shape.rank + axes.shape.num_elements()
        added = tf.reduce_any(tf.range(rank, dtype=axes.dtype) == (tf.reshape(axes, [-1]) % rank)[:, None], 0)
        source = tf.where(added, x.shape.rank, tf.cumsum(tf.cast(~added, tf.int32)) - 1)
        return declared(node, tf.reshape(x, tf.gather(tf.concat([tf.shape(x), [1]], 0), source)))
    axes_of_result = sorted(int(axis) for axis in given.ravel())
    if axes_of_result and axes_of_result[-1] < 0:
        # Counted from the end throughout, they say where they are whatever the rank, which may not be known.
        axes_of_result.reverse()
    elif axes_of_result and axes_of_result[0] < 0:
        axes_of_result = sorted(axis % (x.shape.rank + given.size) for axis in axes_of_result)
    for axis in axes_of_result:
        x = tf.expand_dims(x, axis)
    return x


@lowerings.register("Shape", since=1)
def shape_of(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the sizes of x from ``start`` to before ``end``, both counted as NumPy does. Source: ONNX Shape-25."""
    part = slice(node.attributes.get("start", 0), node.attributes.get("end"))
    if x.shape.rank is not None and _are_known(known := x.shape.as_list()[part]):
        return vector(known)
    return tf.shape(x, tf.int64)[part.start : part.stop]


@lowerings.register("Size", since=1)
def element_count(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the number of elements. Source: ONNX Size-25."""
    return tf.size(x, tf.int64)


@lowerings.register("Expand", since=8)
def expand(node: OperatorNode, x: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Return x broadcast with a shape. Source: ONNX Expand-13."""
    wanted = entries(node, shape, "the number of dimensions of its output")
    own = sizes(x)
    rank = max(len(wanted), len(own))
    wanted, own = [1] * (rank - len(wanted)) + wanted, [1] * (rank - len(own)) + own
    common = [_common(a, b) for a, b in zip(own, wanted, strict=True)]
    return declared(node, tf.broadcast_to(x, vector(common)))


@lowerings.register("Tile", since=6)
def tile(node: OperatorNode, x: tf.Tensor, repeats: tf.Tensor) -> tf.Tensor:
    """Return x repeated along every axis. Source: ONNX Tile-13."""
    # TensorFlow's processor has no kernel for uint16.
    wide = tf.cast(x, tf.int32) if x.dtype == tf.uint16 else x
    return declared(node, tf.cast(tf.tile(wide, repeats), x.dtype))


@lowerings.register("Pad", since=11)
def pad(
    node: OperatorNode,
    x: tf.Tensor,
    pads: tf.Tensor,
    value: tf.Tensor | None = None,
    axes: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return x with elements put before and behind each axis; a negative number takes some away.

    Source: ONNX Pad-25.
    """
    rank = x.shape.rank
    mode = node.attributes.get("mode", "constant")
    if axes is not None and static(axes) is None:
        # Which axis a number belongs to is known at run time only.
        places = tf.cast(tf.reshape(axes, [-1, 1]) % rank, tf.int64)
        pairs = tf.transpose(tf.reshape(tf.cast(pads, tf.int64), [2, -1]))
        table = tf.scatter_nd(places, pairs, tf.constant([rank, 2], tf.int64))
        given = tf.unstack(tf.transpose(table), 2)
        begin, end = tf.unstack(given[0], rank), tf.unstack(given[1], rank)
    else:
        numbers = entries(node, pads, "its number of pads")
        named = static(axes)
        order = list(range(rank)) if named is None else [int(axis) % rank for axis in named.ravel()]
        if len(numbers) != 2 * len(order):
            raise OperatorError(f"{node.label} has {len(numbers)} pads; accepted are {2 * len(order)}, two an axis.")
        begin, end = [0] * rank, [0] * rank
        for index, axis in enumerate(order):
            begin[axis], end[axis] = numbers[index], numbers[len(order) + index]
    return declared(node, pad_by(x, begin, end, mode, value))


@lowerings.register("Slice", since=10)
def slice_axes(
    node: OperatorNode,
    x: tf.Tensor,
    starts: tf.Tensor,
    ends: tf.Tensor,
    axes: tf.Tensor | None = None,
    steps: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return the elements from a start to before an end of some axes; a start before the first one is the first one.

    Source: ONNX Slice-13.
    """
    rank = x.shape.rank
    if axes is not None and static(axes) is None:
        # Which axis a number belongs to is known at run time only.
        places = tf.cast(tf.reshape(axes, [-1, 1]) % rank, tf.int64)
        full = [(starts, 0), (ends, np.iinfo(np.int64).max), (tf.ones_like(starts) if steps is None else steps, 1)]
        begin, end, stride = (
            tf.tensor_scatter_nd_update(tf.constant([d] * rank, tf.int64), places, tf.cast(given, tf.int64))
            for given, d in full
        )
        begin = tf.maximum(begin, -tf.shape(x, tf.int64))
        return declared(node, tf.strided_slice(x, begin, end, stride))
    from_, to = (entries(node, given, "its number of axes") for given in (starts, ends))
    by = [1] * len(from_) if steps is None else entries(node, steps, "its number of axes")
    named = static(axes)
    order = list(range(len(from_))) if named is None else [int(axis) % rank for axis in named.ravel()]
    begin, end, stride = [0] * rank, [0] * rank, [1] * rank
    whole = (1 << rank) - 1
    for axis, *numbers in zip(order, from_, to, by, strict=True):
        begin[axis], end[axis], stride[axis] = numbers
        if not isinstance(begin[axis], int) or begin[axis] < 0:
            # Going backwards, TensorFlow, like NumPy, would start before the first element, where nothing is.
            begin[axis] = maximum(begin[axis], -size(x, axis))
        whole &= ~(1 << axis)
    bounds = (vector(begin), vector(end), vector(stride))
    return declared(node, tf.strided_slice(x, *bounds, begin_mask=whole, end_mask=whole))


@lowerings.register("Split", since=13)
def split(node: OperatorNode, x: tf.Tensor, parts: tf.Tensor | None = None) -> tuple[tf.Tensor, ...]:
    """Return the parts of x along an axis: of given sizes, or all equal but a smaller last. Source: ONNX Split-18."""
    axis = nonnegative_axis(node, x.shape.rank)
    count = len(node.outputs)
    if parts is not None:
        given = entries(node, parts, "its number of parts")
    else:
        whole = size(x, axis)
        most = -(-whole // count)
        given = [maximum(minimum(most, whole - index * most), 0) for index in range(count)]
    return tuple(tf.split(x, vector(given), axis, num=count))


@lowerings.register("Trilu", since=14)
def triangle(node: OperatorNode, x: tf.Tensor, k: tf.Tensor | None = None) -> tf.Tensor:
    """Return the upper or lower triangle of matrices from the k-th diagonal on, else zeros. Source: ONNX Trilu-14."""
    rows, columns = (length(count) for count in sizes(x)[-2:])
    distance = columns - rows[:, None]
    diagonal = tf.cast(0 if k is None else scalar(k), tf.int64)
    kept = distance >= diagonal if node.attributes.get("upper", 1) else distance <= diagonal
    return tf.where(kept, x, tf.zeros([], x.dtype))


@lowerings.register("DepthToSpace", since=1)
def depth_to_space(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return an image with channels turned into blocks of pixels, depth first or column first.

    Source: ONNX DepthToSpace-28.
    """
    block = node.attributes["blocksize"]
    n, c, h, w = sizes(x)
    depth = c // (block * block)
    if node.attributes.get("mode", "DCR") == "DCR":
        y = tf.transpose(_reshaped(x, [n, block, block, depth, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        y = tf.transpose(_reshaped(x, [n, depth, block, block, h, w]), [0, 1, 4, 2, 5, 3])
    return _reshaped(y, [n, depth, h * block, w * block])


@lowerings.register("SpaceToDepth", since=1)
def space_to_depth(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return an image with blocks of pixels turned into channels, depth first or column first.

    Source: ONNX SpaceToDepth-28.
    """
    block = node.attributes["blocksize"]
    n, c, h, w = sizes(x)
    y = _reshaped(x, [n, c, h // block, block, w // block, block])
    order = [0, 3, 5, 1, 2, 4] if node.attributes.get("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return _reshaped(tf.transpose(y, order), [n, c * block * block, h // block, w // block])


@lowerings.register("ReverseSequence", since=10)
def reverse_sequence(node: OperatorNode, x: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Return x with the first elements of every sequence in reversed order. Source: ONNX ReverseSequence-28."""
    time = nonnegative_axis(node, x.shape.rank, 0, "time_axis")
    batch = nonnegative_axis(node, x.shape.rank, 1, "batch_axis")
    return tf.reverse_sequence(x, lengths, seq_axis=time, batch_axis=batch)


@lowerings.register("CenterCropPad", since=18)
def center_crop_pad(node: OperatorNode, x: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Return x cut down to, or surrounded by zeros up to, given sizes of some axes. Source: ONNX CenterCropPad-18."""
    rank = x.shape.rank
    axes = [axis % rank for axis in node.attributes.get("axes") or range(rank)]
    own, target = sizes(x), sizes(x)
    for axis, wanted in zip(axes, entries(node, shape, "its number of axes"), strict=True):
        target[axis] = wanted
    first = [maximum(n - t, 0) // 2 for n, t in zip(own, target, strict=True)]
    count = [minimum(n, t) for n, t in zip(own, target, strict=True)]
    before = [maximum(t - n, 0) // 2 for n, t in zip(own, target, strict=True)]
    behind = [t - n - b for t, n, b in zip(target, count, before, strict=True)]
    return declared(node, crop_and_pad(x, first, count, before, behind))


def _kept(wanted: Size, own: Size) -> Size:
    if isinstance(wanted, int):
        return own if wanted == 0 else wanted
    return tf.where(wanted == 0, tf.cast(own, tf.int64), wanted)


def _common(own: Size, wanted: Size) -> Size:
    """Return the size to which two broadcast; which of them do is checked by TensorFlow."""
    if isinstance(own, int) and own == 1:
        return wanted
    if isinstance(wanted, int):
        return own if wanted == 1 else wanted
    return tf.where(wanted == 1, tf.cast(own, tf.int64), wanted)


def _are_known(values: list[Any]) -> bool:
    return all(isinstance(value, int) for value in values)


def _reshaped(x: tf.Tensor, shape: list[Size]) -> tf.Tensor:
    return tf.reshape(x, vector(shape))


def _merged(rows: Size, columns: Size) -> Any:
    """Return the two sizes, -1 for an unknown one, so that the known one stays known to TensorFlow."""
    if isinstance(columns, int) and columns and not isinstance(rows, int):
        return [-1, columns]
    if isinstance(rows, int) and rows and not isinstance(columns, int):
        return [rows, -1]
    return vector([rows, columns])
