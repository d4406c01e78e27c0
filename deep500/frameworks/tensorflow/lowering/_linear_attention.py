"""Linear attention: a state in place of all keys and values."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._heads import packed, unpacked
from deep500.frameworks.tensorflow.lowering._parameters import size, vector
from deep500.frameworks.tensorflow.lowering._time_loop import Step, Tensors, loop_over_time
from deep500.networks.operator_node import OperatorNode

__all__ = ["linear_attention"]

#: For each update rule, whether the state decays and whether it is corrected.
_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


@lowerings.register("LinearAttention", since=27)
def linear_attention(
    node: OperatorNode,
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    past: tf.Tensor | None = None,
    decay: tf.Tensor | None = None,
    beta: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Read a state that every key writes its value into: :math:`S_t = e^{g_t} S_{t-1} + k_t v_t^T`, :math:`S_t^T q_t`.

    With a rule that corrects, what is written is :math:`\beta_t (v_t - e^{g_t} S_{t-1}^T k_t)` in place of the value.

    Args:
        node: The node.
        query: ``[N, T, query heads * D]``.
        key: ``[N, T, heads * D]``.
        value: ``[N, T, heads * E]``.
        past: The state from before, ``[N, heads, D, E]``; zeros by default.
        decay: g, ``[N, T, heads]`` or ``[N, T, heads * D]``.
        beta: ``[N, T, heads]`` or ``[N, T, 1]``.

    Returns:
        ``[N, T, query heads * E]`` and the last state.

    Raises:
        OperatorError: The rule is not known or does not go with the inputs.

    Source: ONNX LinearAttention-27.
    """
    query_heads, heads = int(node.attributes["q_num_heads"]), int(node.attributes["kv_num_heads"])
    decays, corrects = _rule(node, decay, beta)
    # The state is kept in float32 at least.
    wide = tf.float64 if query.dtype == tf.float64 else tf.float32
    q, k, v = (_over_time(tf.cast(x, wide), n) for x, n in ((query, query_heads), (key, heads), (value, heads)))
    entries = [q, k, v]
    if decays:
        entries.append(tf.exp(_over_time(tf.cast(decay, wide), heads)))
    if corrects:
        entries.append(_over_time(tf.cast(beta, wide), size(beta, 2)))
    scale = float(node.attributes.get("scale", 0.0)) or tf.math.rsqrt(tf.cast(size(q, 3), wide))
    state = _first_state(q, v, heads) if past is None else tf.cast(past, wide)
    step = _step(decays, corrects, heads, query_heads // heads)
    output = tf.TensorSpec([q.shape[1], heads, query_heads // heads, v.shape[3]], wide)
    (read,), (state,) = loop_over_time(step, entries, [state], [output])
    # [T, N, heads, group, E] to [N, query heads, T, E]
    y = tf.reshape(tf.transpose(read, [1, 2, 3, 0, 4]), vector([size(q, 1), query_heads, size(q, 0), size(v, 3)]))
    y.set_shape([q.shape[1], query_heads, q.shape[0], v.shape[3]])
    return tf.cast(packed(y * scale), query.dtype), tf.cast(state, query.dtype if past is None else past.dtype)


def _first_state(q: tf.Tensor, v: tf.Tensor, heads: int) -> tf.Tensor:
    state = tf.zeros(vector([size(q, 1), heads, size(q, 3), size(v, 3)]), q.dtype)
    state.set_shape([q.shape[1], heads, q.shape[3], v.shape[3]])
    return state


def _step(decays: bool, corrects: bool, heads: int, group: int) -> Step:
    """Return what happens to the state at each step, and what is read of it."""

    def step(states: Tensors, now: Tensors) -> tuple[Tensors, Tensors]:
        (state,), (q, k, v, *rest) = states, now
        if decays:
            state = state * rest.pop(0)[..., None]
        if corrects:
            v = rest.pop(0) * (v - tf.linalg.matmul(k[:, :, None], state)[:, :, 0])
        state = state + k[..., None] * v[:, :, None]
        # The query heads of a group read the same state.
        grouped = tf.reshape(q, vector([size(q, 0), heads, group, size(q, 2)]))
        return (state,), (tf.linalg.matmul(grouped, state),)

    return step


def _rule(node: OperatorNode, decay: Any, beta: Any) -> tuple[bool, bool]:
    rule = node.attributes.get("update_rule", "gated_delta")
    if rule not in _RULES:
        raise OperatorError(f"{node.label} has update_rule {rule!r}; accepted are {', '.join(_RULES)}.")
    decays, corrects = _RULES[rule]
    if decays != (decay is not None) or corrects != (beta is not None):
        raise OperatorError(
            f"{node.label} has update_rule {rule!r}, which {'needs' if decays else 'takes no'} decay and "
            f"{'needs' if corrects else 'takes no'} beta; it was given {'no' if decay is None else 'a'} decay and "
            f"{'no' if beta is None else 'a'} beta."
        )
    return decays, corrects


def _over_time(x: tf.Tensor, heads: Any) -> tf.Tensor:
    """Return ``[N, T, heads * D]`` as ``[T, N, heads, D]``."""
    return tf.transpose(unpacked(x, heads), [2, 0, 1, 3])
