"""Regularisation: leaving elements out at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow._dtypes import BIT_FLOATS
from deep500.frameworks.tensorflow._generator import drawn_seed
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._narrow import decode, element_type, encode
from deep500.frameworks.tensorflow.lowering._norms import wide_dtype
from deep500.networks.operator_node import OperatorNode
from deep500.networks.random_streams import node_stream

__all__ = ["dropout"]


@lowerings.register("Dropout", since=12)
def dropout(
    node: OperatorNode, x: tf.Tensor, ratio: tf.Tensor | None = None, training: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Set elements to zero at random and divide the others by the probability that they are kept.

    A node with a seed draws from NumPy's stream of that seed, as ONNX' reference does, so that it leaves out the same
    elements under every framework; such a mask is drawn on the host, and every run takes the next numbers.

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
    mode, known = _mode(node, training), _known_ratio(node)
    if mode is False or known == 0:
        return tf.identity(x), tf.ones(tf.shape(x), tf.bool)
    values = _floats(node, 0, x)
    wide = wide_dtype(values)
    given = tf.constant(known, wide) if known is not None else tf.cast(_floats(node, 1, ratio), wide)
    probability = tf.reshape(given, [])
    drops = tf.constant(True) if mode else tf.reshape(training, [])
    mask = (_noise(node, tf.shape(x), drops, probability.dtype) >= probability) | ~drops
    mask = tf.ensure_shape(mask, x.shape)
    scale = tf.where(drops, 1 / (1 - probability), tf.ones_like(probability))
    y = values * (tf.cast(mask, values.dtype) * tf.cast(scale, values.dtype))
    kind = _kind(node, 0, x)
    return encode(y, kind) if kind in BIT_FLOATS else y, mask


def _mode(node: OperatorNode, training: tf.Tensor | None) -> bool | None:
    """Return whether the node trains, ``None`` when it is known only as the graph runs."""
    if "training_mode" in node.attributes:
        return bool(node.attributes["training_mode"])
    if training is None:
        return False
    return bool(node.constants[2].reshape(())) if 2 in node.constants else None


def _known_ratio(node: OperatorNode) -> float | None:
    if not node.is_given(1):
        return 0.5
    given = node.constants.get(1)
    if given is None:
        return None
    ratio = float(given.reshape(()))
    if not 0 <= ratio < 1:
        raise OperatorError(f"{node.label} was given the ratio {ratio}; accepted are 0 <= ratio < 1.")
    return ratio


def _noise(node: OperatorNode, shape: tf.Tensor, drops: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Return numbers of [0, 1)."""
    if "seed" not in node.attributes:
        seed = drawn_seed()
        if seed is None:
            return tf.random.uniform(shape, dtype=dtype)
        return tf.random.stateless_uniform(shape, seed, dtype=dtype)
    stream = node_stream(node.outputs, node.attributes["seed"])

    def draw(sizes: Any, wanted: Any) -> Any:
        # A run that leaves nothing out takes no numbers.
        return stream.uniform(0.0, 1.0, tuple(sizes)) if wanted else np.zeros(tuple(sizes))

    return tf.cast(tf.numpy_function(draw, [shape, drops], tf.float64), dtype)


def _kind(node: OperatorNode, index: int, x: tf.Tensor) -> str:
    return element_type(node.input_types[index] if index < len(node.input_types) else None, x)


def _floats(node: OperatorNode, index: int, x: tf.Tensor) -> tf.Tensor:
    """Return an input as floats that TensorFlow computes with."""
    kind = _kind(node, index, x)
    return decode(x, kind) if kind in BIT_FLOATS else x
