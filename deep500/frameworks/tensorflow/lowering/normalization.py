"""Batch normalisation."""

from __future__ import annotations

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._tensors import is_empty
from deep500.networks.operator_node import OperatorNode

__all__ = ["batch_normalization"]


@lowerings.register("BatchNormalization", since=14)
def batch_normalization(
    node: OperatorNode, x: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    r"""Normalise each channel: :math:`y = (x - \mu) / \sqrt{\sigma^2 + \epsilon} \cdot scale + bias`.

    In training mode the mean and the biased variance of the batch are used, and the running ones are averaged with
    them: ``running = running * momentum + current * (1 - momentum)``.

    Args:
        node: The node.
        x: ``[N, spatial..., C]`` or ``[N, C]``.
        scale: ``[C]``.
        bias: ``[C]``.
        mean: Running mean, ``[C]``.
        variance: Running variance, ``[C]``.

    Returns:
        The result, shaped as ``x``; in training mode with the next running mean and variance.

    Source: ONNX BatchNormalization-15.
    """
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    if not node.attributes.get("training_mode", 0):
        # The fused kernel has no gradient by mean and variance.
        if x.dtype == tf.float64 or is_empty(x) or not {3, 4} <= set(node.constants):
            return _normalise(x, scale, bias, mean, variance, epsilon)
        return _fused(x, scale, bias, epsilon, mean, variance)[0]
    if x.dtype == tf.float64 or is_empty(x) or node.attributes.get("statistics_are_read", 0):
        wide = _statistics_dtype(x)
        batch_mean, batch_variance = tf.nn.moments(tf.cast(x, wide), list(range(x.shape.rank - 1)))
        y = _normalise(x, scale, bias, batch_mean, batch_variance, epsilon)
    else:
        y, batch_mean, unbiased = _fused(x, scale, bias, epsilon)
        count = tf.cast(tf.size(x) // tf.size(scale), unbiased.dtype)
        batch_variance = unbiased * ((count - 1) / count)
    momentum = float(node.attributes.get("momentum", 0.9))
    return y, _running(mean, batch_mean, momentum), _running(variance, batch_variance, momentum)


def _running(old: tf.Tensor, current: tf.Tensor, momentum: float) -> tf.Tensor:
    wide = tf.cast(old, current.dtype)
    return tf.cast(wide * momentum + current * (1 - momentum), old.dtype)


def _statistics_dtype(x: tf.Tensor) -> tf.DType:
    """Return the dtype in which the statistics are computed: float32 at least."""
    return tf.float64 if x.dtype == tf.float64 else tf.float32


def _normalise(
    x: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, epsilon: float
) -> tf.Tensor:
    wide = _statistics_dtype(x)
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
