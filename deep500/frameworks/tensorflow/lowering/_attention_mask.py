"""Which keys each query of an attention sees, and what is added to its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering._parameters import length, size
from deep500.networks.operator_node import OperatorNode

__all__ = ["AttentionMask", "read_mask"]


@dataclass(frozen=True)
class AttentionMask:
    """The mask of an attention; all parts broadcast to ``[N, heads, queries, keys]``.

    Attributes:
        allowed: Which keys a query sees; ``None`` where it sees all of them.
        bias: What is added to the scores; ``None`` where it is nothing. Negative infinity hides a key, too.
        seeing: Which queries see a key at all, ``[..., queries, 1]``; ``None`` where all do.
    """

    allowed: tf.Tensor | None
    bias: tf.Tensor | None
    seeing: tf.Tensor | None

    def on(self, scores: tf.Tensor) -> tf.Tensor:
        """Return masked scores; all are hidden of a query that sees no key."""
        if self.bias is not None:
            scores = scores + self.bias
        return scores if self.allowed is None else tf.where(self.allowed, scores, _lowest(scores.dtype))

    def for_softmax(self, scores: tf.Tensor) -> tf.Tensor:
        """Return masked scores; none is hidden of a query that sees no key, so that their softmax is a number."""
        bias, allowed = self.bias, self.allowed
        if self.seeing is not None:
            bias = None if bias is None else tf.where(self.seeing, bias, tf.zeros_like(bias))
            allowed = None if allowed is None else allowed | ~self.seeing
        return AttentionMask(allowed, bias, None).on(scores)

    def after_softmax(self, probabilities: tf.Tensor) -> tf.Tensor:
        """Return probabilities with zeros for a query that sees no key."""
        if self.seeing is None:
            return probabilities
        return tf.where(self.seeing, probabilities, tf.zeros_like(probabilities))


def read_mask(
    node: OperatorNode, mask: tf.Tensor | None, past: Any, lengths: tf.Tensor | None, scores: tf.Tensor
) -> AttentionMask:
    """Read the mask of an Attention.

    Args:
        node: The node.
        mask: Its input ``attn_mask``.
        past: Number of the keys that are there from before; ``None`` where there are none.
        lengths: Number of the keys that count, ``[N]``; ``None`` for all.
        scores: ``[N, heads, queries, keys]``.
    """
    queries, keys = size(scores, 2), size(scores, 3)
    allowed, bias = None, None
    if mask is not None:
        mask = _padded(mask, keys)
        if mask.dtype == tf.bool:
            allowed = mask
        else:
            bias = tf.cast(mask, scores.dtype)
    causal = bool(node.attributes.get("is_causal", 0))
    left, right = (int(node.attributes.get(name, -1)) for name in ("left_window_size", "right_window_size"))
    key = length(keys)
    if causal or left >= 0 or right >= 0:
        place = length(queries)[:, None]
        if past is not None:
            place = place + past
        elif lengths is not None:
            place = place + (tf.cast(lengths, tf.int64) - queries)[:, None, None, None]
        if causal:
            allowed = _both(allowed, key <= place)
        if left >= 0:
            allowed = _both(allowed, key >= place - left)
        if right >= 0:
            allowed = _both(allowed, key <= place + right)
    if lengths is not None:
        allowed = _both(allowed, key < tf.cast(lengths, tf.int64)[:, None, None, None])
    seeing = None
    if mask is not None or lengths is not None or left >= 0 or right >= 0:
        seen = allowed if bias is None else _both(allowed, bias > _lowest(bias.dtype))
        seeing = tf.reduce_any(seen, -1, keepdims=True)
    return AttentionMask(allowed, bias, seeing)


def _padded(mask: tf.Tensor, keys: Any) -> tf.Tensor:
    """Return a mask that hides the keys for which it has no entry."""
    if isinstance(keys, int) and mask.shape[-1] == keys:
        return mask
    missing = keys - size(mask, -1)
    pairs = [[0, 0]] * (mask.shape.rank - 1) + [[0, missing]]
    hidden = tf.constant(False) if mask.dtype == tf.bool else _lowest(mask.dtype)
    padded = tf.pad(mask, pairs, constant_values=hidden)
    padded.set_shape([*mask.shape[:-1], keys if isinstance(keys, int) else None])
    return padded


def _lowest(dtype: tf.DType) -> tf.Tensor:
    return tf.constant(float("-inf") if dtype.is_floating else dtype.min, dtype)


def _both(first: tf.Tensor | None, second: tf.Tensor) -> tf.Tensor:
    return second if first is None else first & second
