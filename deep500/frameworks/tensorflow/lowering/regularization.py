"""Regularisation: leaving elements out at random."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = ["dropout"]


@lowerings.register("Dropout", since=12)
def dropout(
    node: OperatorNode, x: tf.Tensor, ratio: tf.Tensor | None = None, training: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Set elements to zero at random and divide the others by the probability that they are kept.

    Args:
        node: The node; its attribute ``training_mode``, which a network with a mode sets, goes before the input.
        x: The elements.
        ratio: Probability that an element is left out, a scalar; 0.5 by default.
        training: Whether anything is left out, a scalar; no by default.

    Returns:
        The result, and which elements were kept.

    Raises:
        OperatorError: The ratio is known and not in [0, 1).

    Source: ONNX Dropout-22.
    """
    mode = _mode(node, training)
    known = _known_ratio(node)
    if mode is False or known == 0:
        return tf.identity(x), tf.ones(tf.shape(x), tf.bool)
    wide = x.dtype if x.dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64) else tf.float32
    probability = tf.cast(known if known is not None else ratio, tf.float64 if wide == tf.float64 else tf.float32)
    drawn = tf.random.uniform(tf.shape(x), dtype=probability.dtype, seed=node.attributes.get("seed"))
    mask = drawn >= probability
    scale = 1 / (1 - probability)
    if mode is None:
        mask = mask | ~tf.reshape(training, [])
        scale = tf.where(tf.reshape(training, []), scale, tf.ones_like(scale))
    mask = tf.ensure_shape(mask, x.shape)
    return tf.cast(tf.cast(x, wide) * (tf.cast(mask, wide) * tf.cast(scale, wide)), x.dtype), mask


def _mode(node: OperatorNode, training: tf.Tensor | None) -> bool | None:
    """Return whether the node trains, ``None`` when it is known only as the graph runs."""
    if "training_mode" in node.attributes:
        return bool(node.attributes["training_mode"])
    if training is None:
        return False
    return bool(node.constants[2]) if 2 in node.constants else None


def _known_ratio(node: OperatorNode) -> float | None:
    if not node.is_given(1):
        return 0.5
    given: Any = node.constants.get(1)
    if given is None:
        return None
    ratio = float(given.reshape(()))
    if not 0 <= ratio < 1:
        raise OperatorError(f"{node.label} was given the ratio {ratio}; accepted are 0 <= ratio < 1.")
    return ratio
