"""Convolutions: plain, transposed, deformable, causal with a state; and columns back into an image."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._columns import col2im
from deep500.frameworks.tensorflow.lowering._conv_transpose import conv_transpose
from deep500.frameworks.tensorflow.lowering._deform_conv import deform_conv
from deep500.frameworks.tensorflow.lowering._parameters import size, vector
from deep500.frameworks.tensorflow.lowering._sums import summed_in_float32
from deep500.frameworks.tensorflow.lowering._tensors import is_empty, nothing
from deep500.frameworks.tensorflow.lowering._windows import Windows, fitting, pad, read_windows, spread
from deep500.networks.operator_node import OperatorNode

__all__ = ["causal_conv_with_state", "col2im", "conv", "conv_transpose", "deform_conv"]

#: See :func:`_is_tiny`.
_FEW_PIXELS = 64


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
    spans = tuple((k - 1) * d + 1 for k, d in zip(windows.kernel, dilations, strict=True))
    return x, spread(w, dilations), dataclasses.replace(windows, kernel=spans, dilations=ones), None


def _convolve(x: tf.Tensor, w: tf.Tensor, windows: Windows, group: int) -> tf.Tensor:
    padding = windows.padding
    if not padding or (len(windows.kernel) == 3 and padding not in ("SAME", "VALID")):
        x, padding = pad(x, windows), "VALID"
    if group == 1:
        padding = [[0, 0]] * 4 if padding == "VALID" and _is_tiny(windows) else padding
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


def _is_tiny(windows: Windows) -> bool:
    """Return whether a convolution is one of single pixels apart from each other, in an image of few.

    Written with explicit padding of 0, TensorFlow computes its gradients by other kernels on the processor. On 8 x 8
    pixels they take two thirds of the time (64 images, 16 to 32 channels), on 16 x 16 the same, on 56 x 56 a quarter
    more.
    """
    if windows.kernel != (1, 1) or windows.strides == (1, 1) or not windows.is_unpadded:
        return False
    return all(isinstance(size, int) for size in windows.sizes) and math.prod(windows.sizes) <= _FEW_PIXELS


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
    convolve = functools.partial(tf.nn.depthwise_conv2d, strides=(1, common, common, 1), padding=padding)
    y = summed_in_float32(convolve, x, kernel)
    return y if height == width else y[:, :: height // common, :: width // common]


@lowerings.register("CausalConvWithState", since=27)
def causal_conv_with_state(
    node: OperatorNode, x: tf.Tensor, w: tf.Tensor, b: tf.Tensor | None = None, past: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Convolve each channel with what came before: :math:`y_t = a(\sum_{j<k} w_j x_{t - k + 1 + j} + b)`.

    Args:
        node: The node; its attribute ``activation`` says whether a is x sigmoid(x) or nothing.
        x: ``[N, C, L]``.
        w: ``[C, 1, k]``.
        b: ``[C]``.
        past: The last k - 1 elements from before, ``[N, C, k - 1]``; zeros by default.

    Returns:
        y, ``[N, C, L]``, and the last k - 1 elements, ``[N, C, k - 1]``.

    Source: ONNX CausalConvWithState-27.
    """
    activation = node.attributes.get("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise OperatorError(f"{node.label} asks for activation {activation!r}; accepted are none, silu and swish.")
    k, length = w.shape[-1], size(x, 2)
    if k is None:
        raise OperatorError(f"{node.label} was given a kernel of unknown size; declare the shape of the weight.")
    if past is None:
        past = tf.zeros(vector([size(x, 0), size(x, 1), k - 1]), x.dtype)
    padded = tf.concat([past, x], 2)
    # A kernel has three or four elements: as many products, and no other layout, cost less than a convolution.
    wide = x.dtype if x.dtype.size > 2 else tf.float32
    window, weight = tf.cast(padded, wide), tf.cast(w, wide)
    y = tf.add_n([window[:, :, j : j + length] * weight[:, :, j] for j in range(k)])
    if b is not None:
        y = y + tf.cast(b, wide)[:, None]
    y = tf.cast(y, x.dtype)
    if activation != "none":
        y = tf.cast(tf.nn.silu(tf.cast(y, wide)), x.dtype)
    y.set_shape(x.shape)
    return y, padded[:, :, length:]
