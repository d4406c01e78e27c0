"""Images: resizing, sampling, regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._host import on_host
from deep500.frameworks.tensorflow.lowering._parameters import (
    Size,
    declared,
    entries,
    length,
    minimum,
    scalar,
    size,
    sizes,
    static,
    vector,
)
from deep500.frameworks.tensorflow.lowering._resizing import AxisResize, ResizeRule, read_rule, resize_axis
from deep500.frameworks.tensorflow.lowering._sampling import GRID_MODES, grid_sample, roi_align
from deep500.networks.operator_node import OperatorNode

__all__ = ["affine_grid", "decode_image", "non_max_suppression", "resize", "sample_grid", "sample_regions", "upsample"]


@lowerings.register("Resize", since=11)
def resize(
    node: OperatorNode,
    x: tf.Tensor,
    roi: tf.Tensor | None = None,
    scales: tf.Tensor | None = None,
    new_sizes: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return x with some axes resized, each new element a weighted mean of near ones. Source: ONNX Resize-19."""
    rank = x.shape.rank
    rule = read_rule(node)
    axes = [axis % rank for axis in node.attributes.get("axes") or range(rank)]
    own = [size(x, axis) for axis in axes]
    # Older versions gave an empty tensor for the one of the two that is absent.
    if scales is not None and scales.shape.num_elements() != 0:
        plans = _by_scales(own, _reals(scales, len(axes)))
    elif new_sizes is not None:
        given = entries(node, new_sizes, "the number of resized axes")
        plans = _by_sizes(own, given, node.attributes.get("keep_aspect_ratio_policy", "stretch"))
    else:
        raise OperatorError(f"{node.label} was given neither scales nor sizes; one of them must be.")
    if roi is not None and rule.coordinates == "tf_crop_and_resize":
        edges = _reals(roi, 2 * len(axes))
        plans = [
            AxisResize(p.size, p.new_size, p.scale, p.width, start, end)
            for p, start, end in zip(plans, edges[: len(axes)], edges[len(axes) :], strict=True)
        ]
    return declared(node, _resized(x, axes, plans, rule))


@lowerings.register("Upsample", since=9)
def upsample(node: OperatorNode, x: tf.Tensor, scales: tf.Tensor) -> tf.Tensor:
    """Return x with every axis enlarged, to the nearest or by linear interpolation. Source: ONNX Upsample-9."""
    mode = node.attributes.get("mode", "nearest")
    rule = ResizeRule("linear" if mode == "bilinear" else mode, "asymmetric", "floor", False, False, -0.75, 0.0)
    plans = _by_scales(sizes(x), _reals(scales, x.shape.rank))
    return declared(node, _resized(x, range(x.shape.rank), plans, rule))


@lowerings.register("GridSample", since=16)
def sample_grid(node: OperatorNode, x: tf.Tensor, grid: tf.Tensor) -> tf.Tensor:
    """Return the values of images at the places of a grid. Source: ONNX GridSample-22."""
    mode = node.attributes.get("mode", "linear")
    if mode not in GRID_MODES:
        raise OperatorError(f"{node.label} has mode={mode!r}; accepted are linear, nearest and cubic.")
    padding = node.attributes.get("padding_mode", "zeros")
    return grid_sample(x, grid, GRID_MODES[mode], padding, bool(node.attributes.get("align_corners", 0)))


@lowerings.register("AffineGrid", since=20)
def affine_grid(node: OperatorNode, theta: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Return the places to which affine maps bring the elements of an image. Source: ONNX AffineGrid-20."""
    plane = entries(node, shape, "the number of dimensions of the image")[2:]
    dtype = tf.float32 if theta.dtype.size < 4 else theta.dtype
    coordinates = []
    for axis, extent in enumerate(plane):
        steps, count = tf.cast(length(extent), dtype), tf.cast(extent, dtype)
        if node.attributes.get("align_corners", 0):
            places = tf.math.divide_no_nan(2 * steps, count - 1) - 1
        else:
            places = (2 * steps + 1) / count - 1
        places = tf.reshape(places, [-1 if other == axis else 1 for other in range(len(plane))])
        coordinates.append(tf.broadcast_to(places, vector(plane)))
    # The last axis comes first.
    base = tf.stack([*reversed(coordinates), tf.ones(vector(plane), dtype)], -1)
    flat = tf.reshape(base, [-1, len(plane) + 1])
    grid = tf.linalg.matmul(flat, tf.cast(theta, dtype), transpose_b=True)
    grid = tf.reshape(grid, vector([size(theta, 0), *plane, len(plane)]))
    return declared(node, tf.cast(grid, theta.dtype))


@lowerings.register("RoiAlign", since=10)
def sample_regions(node: OperatorNode, x: tf.Tensor, regions: tf.Tensor, images: tf.Tensor) -> tf.Tensor:
    """Return the averages or maxima of samples in the cells of regions of images. Source: ONNX RoiAlign-22."""
    attributes = node.attributes
    mode = attributes.get("mode", "avg")
    if mode not in ("avg", "max"):
        raise OperatorError(f"{node.label} has mode={mode!r}; accepted are avg and max.")
    is_shifted = attributes.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    dtype = tf.float32 if x.dtype.size < 4 else x.dtype
    corners = tf.cast(regions, dtype) * attributes.get("spatial_scale", 1.0) - (0.5 if is_shifted else 0.0)
    starts = tf.gather(corners, [1, 0], axis=1)
    extents = tf.gather(corners, [3, 2], axis=1) - starts
    if not is_shifted:
        extents = tf.maximum(extents, 1)
    shape = (attributes.get("output_height", 1), attributes.get("output_width", 1))
    ratio = attributes.get("sampling_ratio", 0)
    return tf.cast(roi_align(tf.cast(x, dtype), starts, extents, images, shape, ratio, mode), x.dtype)


@lowerings.register("NonMaxSuppression", since=10)
def non_max_suppression(
    node: OperatorNode,
    boxes: tf.Tensor,
    scores: tf.Tensor,
    most: tf.Tensor | None = None,
    overlap: tf.Tensor | None = None,
    threshold: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return image, class and number of the boxes that no better box of their class overlaps.

    Source: ONNX NonMaxSuppression-11.
    """
    if node.attributes.get("center_point_box", 0):
        center, half = boxes[..., :2], boxes[..., 2:] / 2
        boxes = tf.concat([center - half, center + half], -1)
    if most is None:
        return tf.zeros([0, 3], tf.int64)
    limit = tf.cast(tf.maximum(minimum(scalar(most), size(boxes, 1)), 0), tf.int32)
    at_most = tf.zeros([]) if overlap is None else tf.reshape(overlap, [])
    at_least = tf.constant(-np.inf, tf.float32) if threshold is None else tf.reshape(threshold, [])
    classes = tf.cast(size(scores, 1), tf.int64)
    count = tf.cast(size(scores, 0), tf.int64) * classes
    found = tf.TensorArray(tf.int64, tf.cast(count, tf.int32), infer_shape=False, element_shape=[None, 3])

    def step(index: tf.Tensor, found: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        image, kind = index // classes, index % classes
        chosen = tf.cast(
            tf.image.non_max_suppression(boxes[image], scores[image, kind], limit, at_most, at_least), tf.int64
        )
        same = tf.ones_like(chosen)
        return index + 1, found.write(tf.cast(index, tf.int32), tf.stack([image * same, kind * same, chosen], 1))

    start = (tf.constant(0, tf.int64), found)
    _, found = tf.while_loop(lambda index, _: index < count, step, start)
    return tf.ensure_shape(found.concat(), [None, 3])


@lowerings.register("ImageDecoder", since=20, on_host=True)
def decode_image(node: OperatorNode, stream: tf.Tensor) -> tf.Tensor:
    """Return the pixels of an encoded image. Runs on the host. Source: ONNX ImageDecoder-20."""
    return on_host(node, stream)[0]


def _reals(x: tf.Tensor, count: int) -> list[Any]:
    """Return the entries of a vector as numbers, or as float64 scalars."""
    value = static(x)
    if value is None:
        return list(tf.unstack(tf.cast(tf.reshape(x, [count]), tf.float64), count))
    return [float(entry) for entry in value.ravel()]


def _by_scales(own: Sequence[Size], scales: Sequence[Any]) -> list[AxisResize]:
    """Return the plans of axes with given scales; ONNX rounds the product in float32."""
    plans = []
    for count, scale in zip(own, scales, strict=True):
        if isinstance(count, int) and isinstance(scale, float):
            new_size = int(np.floor(np.float32(count) * np.float32(scale)))
            plans.append(AxisResize(count, new_size, scale, scale * count))
        else:
            product = tf.cast(count, tf.float32) * tf.cast(scale, tf.float32)
            new_size = tf.cast(tf.math.floor(product), tf.int64)
            plans.append(AxisResize(count, new_size, scale, scale * tf.cast(count, tf.float64)))
    return plans


def _by_sizes(own: Sequence[Size], given: Sequence[Size], policy: str) -> list[AxisResize]:
    """Return the plans of axes with given sizes, changed where the aspect ratio is to be kept."""
    pairs = list(zip(own, given, strict=True))
    are_known = all(isinstance(n, int) for pair in pairs for n in pair)
    scales = [_ratio(new, count) for count, new in pairs]
    if policy == "stretch":
        return [AxisResize(c, new, s, _real(new)) for (c, new), s in zip(pairs, scales, strict=True)]
    if policy not in ("not_larger", "not_smaller"):
        raise OperatorError(f"Resize has the policy {policy!r}; accepted are stretch, not_larger and not_smaller.")
    if are_known:
        scale = min(scales) if policy == "not_larger" else max(scales)
        return [AxisResize(count, int(scale * count + 0.5), scale, scale * count) for count in own]
    # TensorFlow's cast would round Python's numbers to 32 bits first.
    stacked = tf.stack([s if isinstance(s, tf.Tensor) else tf.constant(s, tf.float64) for s in scales])
    scale = tf.reduce_min(stacked) if policy == "not_larger" else tf.reduce_max(stacked)
    widths = [scale * tf.cast(count, tf.float64) for count in own]
    return [AxisResize(c, tf.cast(w + 0.5, tf.int64), scale, w) for c, w in zip(own, widths, strict=True)]


def _real(value: Size) -> Any:
    return float(value) if isinstance(value, int) else tf.cast(value, tf.float64)


def _ratio(new: Size, count: Size) -> Any:
    if isinstance(new, int) and isinstance(count, int):
        return new / count if count else 1.0
    return tf.cast(new, tf.float64) / tf.cast(count, tf.float64)


def _resized(x: tf.Tensor, axes: Sequence[int], plans: Sequence[AxisResize], rule: ResizeRule) -> tf.Tensor:
    needed = [(axis, plan) for axis, plan in zip(axes, plans, strict=True) if not _is_identity(plan)]
    y = x
    if rule.mode != "nearest" and x.dtype not in (tf.float32, tf.float64):
        y = tf.cast(x, tf.float32 if x.dtype.is_floating else tf.float64)
    for axis, plan in needed:
        y = resize_axis(y, axis, plan, rule)
    if x.dtype.is_integer and y.dtype.is_floating:
        return tf.saturate_cast(tf.round(y), x.dtype)
    return tf.cast(y, x.dtype)


def _is_identity(plan: AxisResize) -> bool:
    """Return whether an axis stays as it is."""
    if isinstance(plan.scale, tf.Tensor) or plan.scale != 1.0:
        return False
    return (plan.start, plan.end) == (0.0, 1.0) if plan.is_known else not isinstance(plan.start, tf.Tensor)
