"""Convolution."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._tensors import is_empty, nothing
from deep500.frameworks.tensorflow.lowering._windows import Windows, fitting, pad, read_windows
from deep500.networks.operator_node import OperatorNode

__all__ = ["conv"]


@lowerings.register("Conv", since=1)
def conv(node: OperatorNode, x: tf.Tensor, w: tf.Tensor, b: tf.Tensor | None = None) -> tf.Tensor:
    """Convolve an image.

    Args:
        node: The node.
        x: Image, ``[N, spatial..., C]`` with one to three spatial dimensions.
        w: Kernel, ``[spatial..., C / group, O]``.
        b: Bias, ``[O]``.

    Returns:
        ``[N, spatial..., O]``.

    Source: ONNX Conv-22.
    """
    declared = node.attributes.get("kernel_shape") or [None] * (w.shape.rank - 2)
    kernel = [known or size for known, size in zip(w.shape[:-2], declared, strict=True)]
    windows = read_windows(node, x, kernel)
    x = fitting(node, x, windows)
    if is_empty(x):
        return nothing([x.shape[0], *windows.outputs, w.shape[-1]], x, w, *([] if b is None else [b]))
    if len(kernel) == 1:
        # TensorFlow's one-dimensional convolution is its two-dimensional one over images of height 1.
        x, w, windows = tf.expand_dims(x, 1), tf.expand_dims(w, 0), _with_height(windows)
    x, w, windows, crops = _without_dilations(x, w, windows)
    y = _convolve(x, w, windows, node.attributes.get("group", 1))
    if crops is not None:
        y = tf.batch_to_space(y, *crops)
    if b is not None:
        y = tf.nn.bias_add(y, b)
    return tf.squeeze(y, 1) if len(kernel) == 1 else y


def _with_height(windows: Windows) -> Windows:
    neutral = {"sizes": 1, "kernel": 1, "strides": 1, "dilations": 1, "begin": 0, "end": 0, "overhang": 0, "outputs": 1}
    return Windows(**{name: (value, *getattr(windows, name)) for name, value in neutral.items()})


def _without_dilations(
    x: tf.Tensor, w: tf.Tensor, windows: Windows
) -> tuple[tf.Tensor, tf.Tensor, Windows, tuple[Any, Any] | None]:
    """Return an equal convolution without dilations, and how its result is brought back into shape.

    TensorFlow's processor kernels have no gradient of a dilated convolution. Windows side by side are computed for
    each residue of the pixels apart; with strides, zeros are put between the elements of the kernel.
    """
    dilations = windows.dilations
    ones = (1,) * len(dilations)
    if dilations == ones:
        return x, w, windows, None
    plain = {"dilations": ones, "begin": (0,) * len(ones), "end": (0,) * len(ones), "overhang": (0,) * len(ones)}
    if windows.strides == ones:
        pairs = [[b, e] for b, e in zip(windows.begin, windows.end, strict=True)]
        paddings, crops = tf.required_space_to_batch_paddings(tf.stack(windows.sizes), dilations, pairs)
        x = tf.space_to_batch(x, dilations, paddings)
        return x, w, dataclasses.replace(windows, **plain), (list(dilations), crops)
    for axis, (size, dilation) in enumerate(zip(windows.kernel, dilations, strict=True)):
        if dilation > 1:
            shape = w.shape.as_list()
            spread = tf.pad(
                tf.expand_dims(w, axis + 1), [[0, dilation - 1 if a == axis + 1 else 0] for a in range(len(shape) + 1)]
            )
            merged = tf.reshape(spread, [*shape[:axis], size * dilation, *shape[axis + 1 :]])
            w = tf.gather(merged, tf.range((size - 1) * dilation + 1), axis=axis)
    spans = tuple((k - 1) * d + 1 for k, d in zip(windows.kernel, dilations, strict=True))
    return x, w, dataclasses.replace(windows, kernel=spans, dilations=ones), None


def _convolve(x: tf.Tensor, w: tf.Tensor, windows: Windows, group: int) -> tf.Tensor:
    padding = windows.padding
    if not padding or (len(windows.kernel) == 3 and padding not in ("SAME", "VALID")):
        x, padding = pad(x, windows), "VALID"
    if group == 1:
        operation = tf.nn.conv2d if len(windows.kernel) == 2 else tf.nn.conv3d
        strides = windows.strides if len(windows.kernel) == 2 else (1, *windows.strides, 1)
        return operation(x, w, strides, padding)
    if w.shape[-2] == 1 and len(windows.kernel) == 2:
        return _depthwise(x, w, windows, padding, group)
    # TensorFlow's processor kernels have no gradient of a grouped convolution.
    ungrouped = [
        _convolve(part, kernel, windows if padding == windows.padding else _unpadded(windows), 1)
        for part, kernel in zip(tf.split(x, group, -1), tf.split(w, group, -1), strict=True)
    ]
    return tf.concat(ungrouped, -1)


def _unpadded(windows: Windows) -> Windows:
    zeros = (0,) * len(windows.kernel)
    return dataclasses.replace(windows, begin=zeros, end=zeros, overhang=zeros)


def _depthwise(x: tf.Tensor, w: tf.Tensor, windows: Windows, padding: Any, group: int) -> tf.Tensor:
    """Convolve each channel by itself; the kernel is ``[H, W, 1, O]``."""
    height, width = windows.strides
    # The kernel takes equal strides only: their common part is left to it, what remains is cut out.
    common = math.gcd(height, width)
    # With explicit padding, TensorFlow 2.21 aborts the process when it fuses the operation with a bias.
    if padding != "VALID" and (padding != "SAME" or height != width):
        x, padding = pad(x, windows), "VALID"
    kernel = tf.reshape(w, [*w.shape[:2], group, w.shape[-1] // group])
    y = tf.nn.depthwise_conv2d(x, kernel, (1, common, common, 1), padding)
    return y if height == width else y[:, :: height // common, :: width // common]
