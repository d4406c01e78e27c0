"""Normalisation by the neighbouring channels."""

from __future__ import annotations

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._norms import wide_dtype
from deep500.networks.operator_node import OperatorNode

__all__ = ["lrn"]


@lowerings.register("LRN", since=1)
def lrn(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    r"""Return :math:`x / (bias + \alpha / size \cdot \sum x^2)^\beta`, the sum over ``size`` channels around each.

    Args:
        node: The node.
        x: ``[N, spatial..., C]``, or ``[N, C]``.

    Source: ONNX LRN-13.
    """
    count = int(node.attributes["size"])
    before, behind = (count - 1) // 2, count // 2
    if x.shape[-1] is not None:
        # Further away there are no channels.
        before, behind = min(before, max(x.shape[-1] - 1, 0)), min(behind, max(x.shape[-1] - 1, 0))
    wide = tf.cast(x, wide_dtype(x))
    pairs = [*[[0, 0]] * (x.shape.rank - 1), [before, behind]]
    squares = tf.pad(tf.math.square(wide), pairs)
    channels = tf.shape(x)[-1]
    sums = tf.add_n([squares[..., first : first + channels] for first in range(before + behind + 1)])
    alpha, beta = float(node.attributes.get("alpha", 1e-4)), float(node.attributes.get("beta", 0.75))
    y = wide * tf.math.pow(
        float(node.attributes.get("bias", 1.0)) + alpha / count * sums, tf.constant(-beta, wide.dtype)
    )
    return tf.ensure_shape(tf.cast(y, x.dtype), x.shape)
