"""Attention, and the rotation of what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._attention_mask import AttentionMask, read_mask
from deep500.frameworks.tensorflow.lowering._heads import packed, unpacked
from deep500.frameworks.tensorflow.lowering._linear_attention import linear_attention
from deep500.frameworks.tensorflow.lowering._norms import wide_dtype
from deep500.frameworks.tensorflow.lowering._parameters import size, vector
from deep500.frameworks.tensorflow.lowering._softmax import softmax
from deep500.networks.operator_node import OperatorNode

__all__ = ["attention", "linear_attention", "rotary_embedding"]


@lowerings.register("Attention", since=23)
def attention(
    node: OperatorNode,
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    mask: tf.Tensor | None = None,
    past_key: tf.Tensor | None = None,
    past_value: tf.Tensor | None = None,
    lengths: tf.Tensor | None = None,
) -> tuple[tf.Tensor, ...]:
    r"""Return :math:`softmax(scale \cdot Q K^T + mask) V` for each head.

    Args:
        node: The node.
        query: ``[N, query heads, T, D]`` or ``[N, T, query heads * D]``.
        key: ``[N, heads, S, D]`` or ``[N, S, heads * D]``.
        value: ``[N, heads, S, E]`` or ``[N, S, heads * E]``.
        mask: Which keys are seen, or what is added to the scores; broadcast to ``[N, query heads, T, past + S]``.
        past_key: Keys from before, ``[N, heads, past, D]``.
        past_value: Values from before, ``[N, heads, past, E]``.
        lengths: How many keys of each entry count, ``[N]``.

    Returns:
        The result, shaped as ``query``; all keys and all values; and the scores, as ``qk_matmul_output_mode`` says.

    Source: ONNX Attention-25.
    """
    is_packed = query.shape.rank == 3
    if is_packed:
        query, key, value = _unpacked(node, query, key, value)
    past = None if past_key is None else size(past_key, 2)
    if past_key is not None and past_value is not None:
        key, value = tf.concat([past_key, key], 2), tf.concat([past_value, value], 2)
    # As fused kernels do, half precision is computed in float32: nothing overflows, and less is rounded.
    wide = wide_dtype(query)
    raw = _by_heads(_scaled(node, tf.cast(query, wide)), tf.cast(key, wide), transpose=True)
    cap = float(node.attributes.get("softcap", 0.0))
    capped = cap * tf.math.tanh(raw / cap) if cap > 0 else raw
    own = read_mask(node, mask, past, lengths, raw)
    probabilities = _probabilities(node, capped, own)
    y = tf.cast(_by_heads(probabilities, tf.cast(value, wide), transpose=False), query.dtype)
    y = packed(y) if is_packed else y
    if len(node.outputs) < 4 or not node.outputs[3]:
        return y, key, value
    mode = node.attributes.get("qk_matmul_output_mode", 0)
    return y, key, value, tf.cast((raw, capped, own.on(capped), probabilities)[mode], query.dtype)


def _unpacked(node: OperatorNode, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, ...]:
    names = ("q_num_heads", "kv_num_heads")
    if any(not node.attributes.get(name) for name in names):
        raise OperatorError(f"{node.label} was given inputs of rank 3; they need the attributes {' and '.join(names)}.")
    query_heads, heads = (int(node.attributes[name]) for name in names)
    return unpacked(query, query_heads), unpacked(key, heads), unpacked(value, heads)


def _scaled(node: OperatorNode, query: tf.Tensor) -> tf.Tensor:
    r"""Return queries whose products with the keys are the scores.

    ONNX defines the operator with :math:`\sqrt{scale}` in float32, for inputs in float64 too.
    """
    scale: Any = node.attributes.get("scale")
    if scale is None and query.shape[3] is None:
        root = tf.math.sqrt(tf.math.rsqrt(tf.cast(size(query, 3), tf.float32)))
        return query * tf.cast(root, query.dtype) ** 2
    if scale is None:
        scale = np.float32(1) / np.sqrt(np.float32(max(query.shape[3], 1)))
    return query * float(np.sqrt(np.float32(scale))) ** 2


def _probabilities(node: OperatorNode, scores: tf.Tensor, mask: AttentionMask) -> tf.Tensor:
    logits = mask.for_softmax(scores)
    precision = node.attributes.get("softmax_precision")
    if precision is not None:
        logits = tf.cast(logits, ir.DataType(precision).numpy())
    return mask.after_softmax(tf.cast(softmax(logits), scores.dtype))


def _by_heads(a: tf.Tensor, b: tf.Tensor, transpose: bool) -> tf.Tensor:
    """Return the product of the matrices of each head; several heads of ``a`` in a row share one of ``b``.

    Args:
        a: ``[N, query heads, T, K]``.
        b: ``[N, heads, K, L]``.
        transpose: Whether ``b`` is ``[N, heads, L, K]`` instead.

    Returns:
        ``[N, query heads, T, L]``.
    """
    if a.shape[1] is not None and a.shape[1] == b.shape[1]:
        return tf.linalg.matmul(a, b, transpose_b=transpose)
    # What a group of heads asks stands below each other in one matrix, so that nothing of b is repeated.
    heads, rows = size(b, 1), size(a, 1) // size(b, 1) * size(a, 2)
    stacked = tf.reshape(a, vector([size(a, 0), heads, rows, size(a, 3)]))
    columns = size(b, 2 if transpose else 3)
    y = tf.linalg.matmul(stacked, b, transpose_b=transpose)
    y = tf.reshape(y, vector([size(a, 0), size(a, 1), size(a, 2), columns]))
    y.set_shape([*a.shape[:3], b.shape[2 if transpose else 3]])
    return y


@lowerings.register("RotaryEmbedding", since=23)
def rotary_embedding(
    node: OperatorNode, x: tf.Tensor, cosine: tf.Tensor, sine: tf.Tensor, positions: tf.Tensor | None = None
) -> tf.Tensor:
    r"""Rotate pairs of elements: :math:`(a \cos - b \sin, a \sin + b \cos)`.

    Args:
        node: The node; ``interleaved`` says whether pairs stand side by side or in the two halves of a head, and
            ``rotary_embedding_dim`` how many elements of a head are rotated.
        x: ``[N, heads, T, D]`` or ``[N, T, heads * D]``.
        cosine: ``[N, T, R / 2]``, or ``[places, R / 2]`` with ``positions``.
        sine: As ``cosine``.
        positions: Place of each entry, ``[N, T]``.

    Returns:
        The result, shaped as ``x``.

    Source: ONNX RotaryEmbedding-23.
    """
    if positions is not None:
        cosine, sine = tf.gather(cosine, positions), tf.gather(sine, positions)
    shape = tf.shape(x)
    heads = node.attributes.get("num_heads", 0)
    if x.shape.rank == 3:
        if not heads:
            raise OperatorError(f"{node.label} was given an input of rank 3; it needs the attribute num_heads.")
        y = tf.reshape(x, vector([size(x, 0), size(x, 1), heads, size(x, 2) // heads]))
        y.set_shape([*x.shape[:2], heads, None if x.shape[2] is None else x.shape[2] // heads])
    else:
        y = x
    # The heads are a dimension of their own, behind the entries or before them.
    axis = 2 if x.shape.rank == 3 else 1
    cosine, sine = tf.expand_dims(cosine, axis), tf.expand_dims(sine, axis)
    rotated = node.attributes.get("rotary_embedding_dim", 0) or size(y, 3)
    turned, kept = y[..., :rotated], y[..., rotated:]
    interleaved = bool(node.attributes.get("interleaved", 0))
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else tf.split(turned, 2, -1)
    real, imaginary = cosine * a - sine * b, sine * a + cosine * b
    if interleaved:
        turned = tf.reshape(tf.stack([real, imaginary], -1), tf.shape(turned))
    else:
        turned = tf.concat([real, imaginary], -1)
    return tf.ensure_shape(tf.reshape(tf.concat([turned, kept], -1), shape), x.shape)
