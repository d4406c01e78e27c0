"""Operators that read and write elements by their indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._elements import (
    element_positions,
    from_last,
    row_positions,
    scatter_rows,
    sort_keys,
    to_last,
)
from deep500.frameworks.tensorflow.lowering._host import call_on_host
from deep500.frameworks.tensorflow.lowering._parameters import (
    declared,
    length,
    nonnegative_axis,
    product,
    scalar,
    size,
    sizes,
    static,
    vector,
)
from deep500.frameworks.tensorflow.lowering._tensors import is_empty
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "compress",
    "gather",
    "gather_elements",
    "gather_nd",
    "nonzero",
    "one_hot",
    "scatter_elements",
    "scatter_nd",
    "tensor_scatter",
    "top_k",
    "unique",
]


@lowerings.register("Gather", since=1)
def gather(node: OperatorNode, x: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """Return the slices of x along an axis that indices name. Source: ONNX Gather-13."""
    axis = nonnegative_axis(node, x.shape.rank)
    known = static(indices)
    if known is None or (known.size and known.min() < 0):
        indices = tf.where(indices < 0, indices + tf.cast(size(x, axis), indices.dtype), indices)
    return tf.gather(x, indices, axis=axis)


@lowerings.register("GatherElements", since=11)
def gather_elements(node: OperatorNode, x: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """Return ``x[i, ..., indices[i, ..., k], ..., k]``. Source: ONNX GatherElements-13."""
    positions = element_positions(indices, nonnegative_axis(node, x.shape.rank), sizes(x))
    return tf.gather(tf.reshape(x, [-1]), positions)


@lowerings.register("GatherND", since=11)
def gather_nd(node: OperatorNode, x: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """Return the slices of x that tuples of indices name, batch by batch. Source: ONNX GatherND-13."""
    batch = node.attributes.get("batch_dims", 0)
    own, named = sizes(x), sizes(indices)
    depth = indices.shape[-1]
    if depth is None:
        raise OperatorError(f"{node.label} was given indices of shape {indices.shape}; accepted is a known last size.")
    inner = own[batch : batch + depth]
    rows = row_positions(indices, inner)
    slices = vector([product(own[: batch + depth]), *own[batch + depth :]])
    if batch:
        count = product(inner)
        starts = length(product(own[:batch])) * tf.cast(count, tf.int64)
        end = tf.cast(product(own[: batch + depth]), tf.int64)
        starts = tf.reshape(starts, vector([*own[:batch], *[1] * (rows.shape.rank - batch)]))
        rows = tf.where(rows == tf.cast(count, tf.int64), end, rows + starts)
    y = tf.gather(tf.reshape(x, slices), rows)
    return tf.reshape(y, vector([*named[:-1], *own[batch + depth :]]))


@lowerings.register("Scatter", since=9)
@lowerings.register("ScatterElements", since=11)
def scatter_elements(node: OperatorNode, x: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
    """Return x with ``x[i, ..., indices[i, ..., k], ..., k]`` replaced by, or combined with, updates.

    Source: ONNX ScatterElements-18.
    """
    own = sizes(x)
    if not own:
        own, x, indices, updates = [1], x[None], tf.reshape(indices, [1]), tf.reshape(updates, [1])
    axis = nonnegative_axis(node, len(own))
    positions = tf.reshape(element_positions(indices, axis, own), [-1])
    reduction = node.attributes.get("reduction", "none")
    y = scatter_rows(tf.reshape(x, [-1]), positions, tf.reshape(updates, [-1]), reduction)
    return tf.reshape(y, vector(own) if node.rank() else [])


@lowerings.register("ScatterND", since=11)
def scatter_nd(node: OperatorNode, x: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
    """Return x with the slices that tuples of indices name replaced by, or combined with, updates.

    Source: ONNX ScatterND-18.
    """
    if is_empty(x):
        return tf.identity(x)
    own, depth = sizes(x), indices.shape[-1]
    if depth is None:
        raise OperatorError(f"{node.label} was given indices of shape {indices.shape}; accepted is a known last size.")
    rows = tf.reshape(row_positions(indices, own[:depth]), [-1])
    count, width = product(own[:depth]), product(own[depth:])
    slices = tf.reshape(updates, vector([size(rows, 0), width]))
    y = scatter_rows(tf.reshape(x, vector([count, width])), rows, slices, node.attributes.get("reduction", "none"))
    return tf.reshape(y, vector(own))


@lowerings.register("TensorScatter", since=24)
def tensor_scatter(
    node: OperatorNode, cache: tf.Tensor, update: tf.Tensor, starts: tf.Tensor | None = None
) -> tf.Tensor:
    """Return a cache with an update written into every sequence from its start on. Source: ONNX TensorScatter-24."""
    axis = nonnegative_axis(node, cache.shape.rank, -2)
    most, count = (tf.cast(size(x, axis), tf.int64) for x in (cache, update))
    if update.shape[axis] == 0:
        return tf.identity(cache)
    starts = tf.zeros([size(cache, 0)], tf.int64) if starts is None else starts
    source = length(most) - starts[:, None]
    if node.attributes.get("mode", "linear") == "circular":
        source = tf.math.floormod(source, most)
    else:
        message = f"{node.label}: an update does not fit into the cache behind its write index"
        check = tf.debugging.Assert(tf.reduce_all((starts >= 0) & (starts + count <= most)), [message, starts])
        with tf.control_dependencies([check]):
            source = tf.identity(source)
    written = (source >= 0) & (source < count)
    values = tf.gather(update, tf.clip_by_value(source, 0, count - 1), axis=axis, batch_dims=1)
    ones = [1] * cache.shape.rank
    ones[0], ones[axis] = size(cache, 0), size(cache, axis)
    return tf.where(tf.reshape(written, vector(ones)), values, cache)


@lowerings.register("TopK", since=11)
def top_k(node: OperatorNode, x: tf.Tensor, k: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the largest or smallest elements along an axis and their indices; of equals the first comes first.

    Source: ONNX TopK-24.
    """
    axis = nonnegative_axis(node, x.shape.rank, -1)
    moved = to_last(x, axis)
    count = tf.cast(scalar(k), tf.int32)
    if node.attributes.get("largest", 1):
        values, indices = tf.math.top_k(moved, count)
    elif x.dtype.is_integer:
        # Inverting all bits reverses the order of signed and of unsigned integers, without overflow.
        values, indices = tf.math.top_k(tf.bitwise.invert(moved), count)
        values = tf.bitwise.invert(values)
    else:
        values, indices = tf.math.top_k(-moved, count)
        values = -values
    # TensorFlow's gradient of top_k knows indices of 32 bits only.
    indices = tf.cast(indices, tf.int64)
    return declared(node, from_last(values, axis)), declared(node, from_last(indices, axis), 1)


@lowerings.register("NonZero", since=9)
def nonzero(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the indices of the elements that are not zero, one row an axis. Source: ONNX NonZero-13."""
    holds = x if x.dtype == tf.bool else x != tf.zeros([], x.dtype)
    if not x.shape.rank:
        return tf.zeros(tf.stack([0, tf.cast(holds, tf.int32)]), tf.int64)
    return tf.transpose(tf.where(holds))


@lowerings.register("OneHot", since=9)
def one_hot(node: OperatorNode, indices: tf.Tensor, depth: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Return, along a new axis, the second value where the indices point and the first one elsewhere.

    Source: ONNX OneHot-28.
    """
    axis = nonnegative_axis(node, indices.shape.rank + 1, -1)
    known = static(depth)
    count = tf.cast(tf.reshape(depth, []), tf.int64) if known is None else int(known.ravel()[0])
    places = tf.cast(indices, tf.int64)
    places = tf.where(places < 0, places + tf.cast(count, tf.int64), places)
    hot = tf.expand_dims(places, axis) == tf.reshape(length(count), [-1, *[1] * (indices.shape.rank - axis)])
    return tf.where(hot, values[1], values[0])


@lowerings.register("Compress", since=9)
def compress(node: OperatorNode, x: tf.Tensor, condition: tf.Tensor) -> tf.Tensor:
    """Return the slices along an axis, by default the elements, for which a condition holds.

    Source: ONNX Compress-28.
    """
    chosen = tf.where(condition)[:, 0]
    if "axis" not in node.attributes:
        return tf.gather(tf.reshape(x, [-1]), chosen)
    return tf.gather(x, chosen, axis=nonnegative_axis(node, x.shape.rank))


@lowerings.register("Unique", since=11)
def unique(node: OperatorNode, x: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Return the different elements or slices, where each occurs first, which one each is, and how often it occurs.

    Source: ONNX Unique-28.
    """
    axis = None if "axis" not in node.attributes else nonnegative_axis(node, x.shape.rank)
    if axis is None:
        axis, x = 0, tf.reshape(x, [-1])
    keys = _text_keys(x) if x.dtype == tf.string else sort_keys(x)
    # One row of integers for every element or slice.
    rows = tf.reshape(tf.transpose(keys, [axis, *(a for a in range(x.shape.rank) if a != axis)]), [size(x, axis), -1])
    _, which, counts = tf.raw_ops.UniqueWithCountsV2(x=rows, axis=tf.constant([0], tf.int64), out_idx=tf.int64)
    found = tf.size(counts, tf.int64)
    first = tf.math.unsorted_segment_min(length(size(x, axis)), which, found)
    if node.attributes.get("sorted", 1):
        order = _row_order(tf.gather(rows, first))
        first, counts = tf.gather(first, order), tf.gather(counts, order)
        which = tf.gather(tf.scatter_nd(order[:, None], length(found), found[None]), which)
    return tf.gather(x, first, axis=axis), first, which, counts


def _text_keys(x: tf.Tensor) -> tf.Tensor:
    """Return integers in the order of texts. Runs on the host: TensorFlow does not compare texts."""

    def ranks(texts: NDArray[Any]) -> list[NDArray[Any]]:
        return [np.unique(texts.astype(str), return_inverse=True)[1].reshape(texts.shape)]

    return call_on_host(ranks, [x], [TensorDescriptor("int64", tuple(x.shape))])[0]


def _row_order(rows: tf.Tensor) -> tf.Tensor:
    """Return the indices of the rows of a matrix in lexicographic order, int64."""

    def by_column(column: tf.Tensor, order: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        values = tf.gather(rows[:, column], order)
        return column - 1, tf.gather(order, tf.argsort(values, stable=True))

    start = (tf.shape(rows)[1] - 1, length(tf.shape(rows, tf.int64)[0]))
    return tf.while_loop(lambda column, order: column >= 0, by_column, start)[1]
