"""Normalisation: to mean 0 and variance 1, or to a norm of 1, over the batch or within each of its entries."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._local_response import lrn
from deep500.frameworks.tensorflow.lowering._norms import powers, root, wide_dtype
from deep500.frameworks.tensorflow.lowering._parameters import product, size, vector
from deep500.frameworks.tensorflow.lowering._tensors import is_empty
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "batch_normalization",
    "group_normalization",
    "instance_normalization",
    "layer_normalization",
    "lp_normalization",
    "lrn",
    "mean_variance_normalization",
    "rms_normalization",
]


@lowerings.register("BatchNormalization", since=14)
def batch_normalization(
    node: OperatorNode, x: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
) -> tf.Tensor | tuple[tf.Tensor, ...]:
    r"""Normalise each channel: :math:`y = (x - \mu) / \sqrt{\sigma^2 + \epsilon} \cdot scale + bias`.

    In training mode the mean and the biased variance of the batch are used, and the running ones are averaged with
    them: ``running = running * momentum + current * (1 - momentum)``.

    Args:
        node: The node.
        x: ``[N, spatial..., C]``, ``[N, C]`` or ``[N]``.
        scale: ``[C]``.
        bias: ``[C]``.
        mean: Running mean, ``[C]``.
        variance: Running variance, ``[C]``.

    Returns:
        The result, shaped as ``x``; in training mode with the next running mean and variance.

    Source: ONNX BatchNormalization-15.
    """
    if x.shape.rank == 1:
        # A vector is a batch of one channel.
        results = batch_normalization(node, tf.expand_dims(x, 1), scale, bias, mean, variance)
        y, *rest = results if isinstance(results, tuple) else (results,)
        return (tf.squeeze(y, 1), *rest)
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    if not node.attributes.get("training_mode", 0):
        # The fused kernel has no gradient by mean and variance.
        if x.dtype == tf.float64 or is_empty(x) or not {3, 4} <= set(node.constants):
            return _normalise(x, scale, bias, mean, variance, epsilon)
        return _fused(x, scale, bias, epsilon, mean, variance)[0]
    momentum = float(node.attributes.get("momentum", 0.9))
    share: float | tf.Tensor = 1 - momentum
    if x.dtype == tf.float64 or is_empty(x) or node.attributes.get("statistics_are_read", 0):
        wide = wide_dtype(x)
        batch_mean, batch_variance = tf.nn.moments(tf.cast(x, wide), list(range(x.shape.rank - 1)))
        y = _normalise(x, scale, bias, batch_mean, batch_variance, epsilon)
    else:
        y, batch_mean, batch_variance = _fused(x, scale, bias, epsilon)
        # The variance is the unbiased one; (n - 1) / n of it are the biased one, for n values a channel.
        share = share - share * tf.cast(tf.size(scale), tf.float32) / tf.cast(tf.size(x), tf.float32)
    return y, _running(mean, batch_mean, momentum, 1 - momentum), _running(variance, batch_variance, momentum, share)


def _running(old: tf.Tensor, current: tf.Tensor, momentum: float, share: float | tf.Tensor) -> tf.Tensor:
    wide = tf.cast(old, current.dtype)
    return tf.cast(wide * momentum + current * share, old.dtype)


def _normalise(
    x: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, epsilon: float
) -> tf.Tensor:
    wide = wide_dtype(x)
    scale, bias, mean, variance = (tf.cast(v, wide) for v in (scale, bias, mean, variance))
    return tf.cast((tf.cast(x, wide) - mean) * (scale * tf.math.rsqrt(variance + epsilon)) + bias, x.dtype)


def _fused(
    x: tf.Tensor,
    scale: tf.Tensor,
    bias: tf.Tensor,
    epsilon: float,
    mean: tf.Tensor | None = None,
    variance: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Run TensorFlow's kernel, which takes images only; return result, batch mean and *unbiased* batch variance."""
    scale, bias = tf.cast(scale, tf.float32), tf.cast(bias, tf.float32)
    training = mean is None
    image = x if x.shape.rank == 4 else tf.reshape(x, tf.stack([tf.shape(x)[0], 1, -1, tf.shape(x)[-1]]))
    # tf.nn.fused_batch_norm raises epsilon to 1.001e-5; the operator under it takes it as it is.
    result = tf.raw_ops.FusedBatchNormV3(
        x=image,
        scale=scale,
        offset=bias,
        mean=tf.constant([], tf.float32) if training else tf.cast(mean, tf.float32),
        variance=tf.constant([], tf.float32) if training else tf.cast(variance, tf.float32),
        epsilon=epsilon,
        is_training=training,
    )
    y = result.y if x.shape.rank == 4 else tf.ensure_shape(tf.reshape(result.y, tf.shape(x)), x.shape)
    return y, result.batch_mean, result.batch_variance


@lowerings.register("InstanceNormalization", since=6)
def instance_normalization(node: OperatorNode, x: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    r"""Normalise each channel of each entry: :math:`(x - \mu) / \sqrt{\sigma^2 + \epsilon} \cdot scale + bias`.

    Args:
        node: The node.
        x: ``[N, spatial..., C]``.
        scale: ``[C]``.
        bias: ``[C]``.

    Returns:
        The result, shaped as ``x``.

    Source: ONNX InstanceNormalization-22.
    """
    wide = wide_dtype(x)
    y, _, _ = _standardised(tf.cast(x, wide), range(1, x.shape.rank - 1), _epsilon(node))
    return tf.cast(y * tf.cast(scale, wide) + tf.cast(bias, wide), x.dtype)


@lowerings.register("GroupNormalization", since=21)
def group_normalization(node: OperatorNode, x: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Normalise groups of channels of each entry; scale and bias are those of each channel.

    Args:
        node: The node.
        x: ``[N, spatial..., C]``, or ``[N, C]``.
        scale: ``[C]``.
        bias: ``[C]``.

    Returns:
        The result, shaped as ``x``.

    Source: ONNX GroupNormalization-21.
    """
    count, channels = node.attributes["num_groups"], size(x, x.shape.rank - 1)
    # The number of pixels is written down, since an empty image has no -1.
    pixels = product([size(x, axis) for axis in range(1, x.shape.rank - 1)])
    groups = tf.reshape(tf.cast(x, _stage_dtype(node, x)), vector([size(x, 0), pixels, count, channels // count]))
    y, _, _ = _standardised(groups, [1, 3], _epsilon(node))
    return tf.ensure_shape(tf.reshape(tf.cast(y, x.dtype), tf.shape(x)), x.shape) * scale + bias


@lowerings.register("LayerNormalization", since=17)
def layer_normalization(
    node: OperatorNode, x: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Normalise over the dimensions from ``axis`` on.

    Returns:
        The result, the means, and what the deviations were multiplied by.

    Source: ONNX LayerNormalization-17.
    """
    stash = _stash_dtype(node)
    y, mean, inverse = _standardised(tf.cast(x, _stage_dtype(node, x)), _last_axes(node, x), _epsilon(node))
    y = tf.cast(y, x.dtype) * scale
    return y if bias is None else y + bias, tf.cast(mean, stash), tf.cast(inverse, stash)


@lowerings.register("RMSNormalization", since=23)
def rms_normalization(node: OperatorNode, x: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
    r"""Return :math:`x / \sqrt{mean(x^2) + \epsilon} \cdot scale`, the mean over the dimensions from ``axis`` on.

    Source: ONNX RMSNormalization-23.
    """
    wide = tf.cast(x, _stage_dtype(node, x))
    squares = tf.reduce_mean(tf.math.square(wide), _last_axes(node, x), keepdims=True)
    # The result has the dtype of the scale, which may be another one than that of x.
    return tf.cast(tf.cast(wide * tf.math.rsqrt(squares + _epsilon(node)), x.dtype), scale.dtype) * scale


@lowerings.register("LpNormalization", since=1)
def lp_normalization(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    r"""Return :math:`x / (\sum |x|^p)^{1 / p}` along an axis, 0 where the norm is 0.

    Source: ONNX LpNormalization-22.
    """
    p = node.attributes.get("p", 2)
    norm = root(tf.reduce_sum(powers(x, p), node.attributes.get("axis", -1), keepdims=True), p)
    zero = tf.equal(norm, 0)
    safe = tf.where(zero, tf.ones_like(norm), norm)
    return tf.cast(tf.where(zero, tf.zeros_like(norm), tf.cast(x, norm.dtype) / safe), x.dtype)


@lowerings.register("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    r"""Return :math:`(x - \mu) / (\sigma + 10^{-9})` over some axes. Source: ONNX MeanVarianceNormalization-13."""
    axes = list(node.attributes.get("axes") or [0, 2, 3])
    wide = tf.cast(x, wide_dtype(x))
    deviation = wide - tf.reduce_mean(wide, axes, keepdims=True)
    variance = tf.reduce_mean(tf.math.square(deviation), axes, keepdims=True)
    return tf.cast(deviation / (root(variance, 2) + 1e-9), x.dtype)


def _standardised(x: tf.Tensor, axes: Sequence[int], epsilon: float) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return x with mean 0 and variance 1 over some axes, the means, and the inverses of the standard deviations."""
    mean = tf.reduce_mean(x, list(axes), keepdims=True)
    deviation = x - mean
    variance = tf.reduce_mean(tf.math.square(deviation), list(axes), keepdims=True)
    inverse = tf.math.rsqrt(variance + epsilon)
    return deviation * inverse, mean, inverse


def _last_axes(node: OperatorNode, x: tf.Tensor) -> list[int]:
    return list(range(node.attributes.get("axis", -1) % x.shape.rank, x.shape.rank))


def _epsilon(node: OperatorNode) -> float:
    return float(node.attributes.get("epsilon", 1e-5))


def _stash_dtype(node: OperatorNode) -> tf.DType:
    return tf.as_dtype(ir.DataType(node.attributes.get("stash_type", 1)).numpy())


def _stage_dtype(node: OperatorNode, x: tf.Tensor) -> tf.DType:
    """Return the dtype of the first stage: ``stash_type``; of float64 no digit is given away."""
    return tf.float64 if x.dtype == tf.float64 else _stash_dtype(node)
