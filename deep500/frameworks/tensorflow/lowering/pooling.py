"""Pooling: maxima, averages and norms over windows, regions or whole images.

Maxima and averages get and give images channels last, ``[N, spatial..., C]``, as ``_layout`` plans them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._max_indices import max_pool_indices, max_unpool
from deep500.frameworks.tensorflow.lowering._max_roi_pool import max_roi_pool
from deep500.frameworks.tensorflow.lowering._norms import powers, root
from deep500.frameworks.tensorflow.lowering._tensors import is_empty, nothing
from deep500.frameworks.tensorflow.lowering._windows import Windows, fitting, pad, read_windows
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "average_pool",
    "global_average_pool",
    "global_lp_pool",
    "global_max_pool",
    "lp_pool",
    "max_pool",
    "max_roi_pool",
    "max_unpool",
]


@lowerings.register("MaxPool", since=8)
def max_pool(node: OperatorNode, x: tf.Tensor) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
    """Return the maximum of each window, ``[N, spatial..., C]``; what is put around the image never is one.

    If the node has a second output, also where each is in the image as ONNX has it, ``[N, C, spatial...]``.

    Source: ONNX MaxPool-22.
    """
    windows = read_windows(node, x, node.attributes["kernel_shape"])
    x = fitting(node, x, windows)
    if is_empty(x):
        y = nothing([x.shape[0], *windows.outputs, x.shape[-1]], x)
        return y, tf.zeros([x.shape[0], x.shape[-1], *windows.outputs], tf.int64)
    y = _maxima(x, windows)
    return (y, max_pool_indices(node, x, windows)) if any(node.outputs[1:]) else y


def _maxima(x: tf.Tensor, windows: Windows) -> tf.Tensor:
    lowest = -np.inf if x.dtype.is_floating else x.dtype.min
    # The maximum of nothing is -inf; for TensorFlow's kernels it is the lowest number.
    if not _has_kernel(x, windows) or windows.may_miss_image:
        return functools.reduce(tf.maximum, windows.slices(pad(x, windows, lowest)))
    image, padding = x, windows.padding
    if not padding:
        image, padding = pad(x, windows, lowest), "VALID"
    y = tf.nn.max_pool(image, windows.kernel, windows.strides, padding)
    return y if _is_bounded_below(x) else _with_infinity(y)


def _is_bounded_below(x: tf.Tensor) -> bool:
    """Return whether no element can be -inf, as after an activation; then the operations that find it are saved."""
    operation = x.op
    while operation.type in ("Identity", "Reshape", "Transpose"):
        operation = operation.inputs[0].op
    return operation.type in ("Abs", "Exp", "Relu", "Sigmoid", "Softmax", "Sqrt", "Tanh")


@tf.custom_gradient  # type: ignore[untyped-decorator]
def _with_infinity(y: tf.Tensor) -> tuple[tf.Tensor, Any]:
    """Return maxima with -inf for the lowest number, which is what TensorFlow's kernels take for it."""
    exact = tf.where(y > y.dtype.min, y, tf.constant(-np.inf, y.dtype))
    return exact, lambda gradient: gradient


@lowerings.register("AveragePool", since=7)
def average_pool(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the average of each window, ``[N, spatial..., C]``, with or without what is put around the image.

    Source: ONNX AveragePool-22.
    """
    windows = read_windows(node, x, node.attributes["kernel_shape"])
    x = fitting(node, x, windows)
    if is_empty(x):
        return nothing([x.shape[0], *windows.outputs, x.shape[-1]], x)
    with_padding = bool(node.attributes.get("count_include_pad", 0))
    if _has_kernel(x, windows) and windows.is_same and not with_padding:
        return tf.nn.avg_pool(x, windows.kernel, windows.strides, "SAME")
    y = _averages(x, windows)
    if windows.is_unpadded:
        return y
    return y * _correction(windows, with_padding, x.dtype)


def _averages(x: tf.Tensor, windows: Windows) -> tf.Tensor:
    """Return the sum of each window, with zeros around the image, divided by the number of its elements."""
    padded = pad(x, windows)
    # Windows behind the image do not count, but TensorFlow would have those that lie in the padding as a whole.
    if _has_kernel(x, windows) and not windows.may_miss_image:
        return tf.nn.avg_pool(padded, windows.kernel, windows.strides, "VALID")
    return tf.add_n(list(windows.slices(padded))) / tf.cast(math.prod(windows.kernel), x.dtype)


@lowerings.register("LpPool", since=2)
def lp_pool(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    r"""Return the norm of each window, :math:`(\sum |x|^p)^{1 / p}`, ``[N, spatial..., C]``.

    Source: ONNX LpPool-22.
    """
    p = node.attributes.get("p", 2)
    windows = read_windows(node, x, node.attributes["kernel_shape"])
    x = fitting(node, x, windows)
    if is_empty(x):
        return nothing([x.shape[0], *windows.outputs, x.shape[-1]], x)
    sums = _averages(powers(x, p), windows) * math.prod(windows.kernel)
    return tf.cast(root(sums, p), x.dtype)


@lowerings.register("GlobalLpPool", since=2)
def global_lp_pool(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the norm of each channel, ``[N, 1..., C]``. Source: ONNX GlobalLpPool-22."""
    p = node.attributes.get("p", 2)
    sums = tf.reduce_sum(powers(x, p), _spatial_axes(x), keepdims=True)
    return tf.cast(root(sums, p), x.dtype)


@lowerings.register("GlobalAveragePool", since=1)
def global_average_pool(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the average of each channel, ``[N, 1..., C]``.

    Source: ONNX GlobalAveragePool-22.
    """
    return tf.reduce_mean(x, _spatial_axes(x), keepdims=True)


@lowerings.register("GlobalMaxPool", since=1)
def global_max_pool(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return the maximum of each channel, ``[N, 1..., C]``.

    Source: ONNX GlobalMaxPool-22.
    """
    return tf.reduce_max(x, _spatial_axes(x), keepdims=True)


def _spatial_axes(x: tf.Tensor) -> list[int]:
    return list(range(1, x.shape.rank - 1))


def _has_kernel(x: tf.Tensor, windows: Windows) -> bool:
    """Whether TensorFlow's processor kernels can do it: not with dilations, and volumes not in every dtype."""
    if any(d > 1 for d in windows.dilations):
        return False
    accepted = (
        (tf.float32, tf.bfloat16) if len(windows.kernel) == 3 else (tf.float32, tf.bfloat16, tf.float64, tf.float16)
    )
    return x.dtype in accepted


def _correction(windows: Windows, with_padding: bool, dtype: tf.DType) -> tf.Tensor:
    """Return size of a window / number of its elements that count, ``[1, outputs..., 1]``."""
    factor: Any = np.ones(())
    spatial = len(windows.kernel)
    for axis in range(spatial):
        size, begin, end = windows.sizes[axis], windows.begin[axis], windows.end[axis]
        # The elements of every window as positions in the image; those put around it are negative or too large.
        static = isinstance(windows.outputs[axis], int)
        arrange = np.arange if static else tf.range
        starts = arrange(windows.outputs[axis]) * windows.strides[axis] - begin
        positions = starts[:, None] + np.arange(windows.kernel[axis], dtype=np.int32) * windows.dilations[axis]
        lowest, highest = (-begin, size + end) if with_padding else (0, size)
        counted = (positions >= lowest) & (positions < highest)
        counts = counted.sum(1) if static else tf.reduce_sum(tf.cast(counted, tf.int32), 1)
        # A window that lies outside the image as a whole has the sum 0, and the average 0.
        counts = np.maximum(counts, 1) if static else tf.maximum(counts, 1)
        ratio = windows.kernel[axis] / counts
        shape = [1, *(-1 if other == axis else 1 for other in range(spatial)), 1]
        factor = factor * (ratio.reshape(shape) if static else tf.reshape(ratio, shape))
    return tf.cast(factor, dtype)
