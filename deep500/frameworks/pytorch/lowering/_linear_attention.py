"""Linear attention: a state of keys and values instead of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from deep500.frameworks.pytorch._recording import recorded

__all__ = ["linear_recurrence"]


@recorded
def linear_recurrence(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    past: torch.Tensor | None,
    decay: torch.Tensor | None,
    beta: torch.Tensor | None,
    heads: Sequence[int],
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return outputs ``[batch, time, heads size]`` and the last state ``[batch, heads, key size, value size]``.

    ``S = exp(g) S + beta k (v - (exp(g) S)^T k)^T`` and ``y = scale q^T S`` in every step, in 32 bits; without decay
    ``exp(g)`` is 1, without beta nothing is subtracted.
    """
    q_heads, kv_heads = heads
    batch, time = q.shape[:2]
    queries, keys, values = (
        _split(x, count) for x, count in ((q, q_heads), (k, kv_heads), (v, kv_heads))
    )  # [time, batch, heads, size]
    # Query heads that share keys and values: [time, batch, key heads, group, size].
    queries = queries.reshape(time, batch, kv_heads, q_heads // kv_heads, queries.shape[3])
    queries = queries * (scale or 1 / math.sqrt(queries.shape[4]))
    if past is None:
        state = queries.new_zeros((batch, kv_heads, keys.shape[3], values.shape[3]))
    else:
        state = past.to(torch.float32)
    kept = None if decay is None else torch.exp(_split(decay, kv_heads)).unsqueeze(4)
    rates = None if beta is None else beta.to(torch.float32).transpose(0, 1).unsqueeze(3)
    outputs = []
    for step in range(time):
        key, value = keys[step], values[step]
        if kept is not None:
            state = state * kept[step]
        if rates is not None:
            value = rates[step] * (value - (key.unsqueeze(2) @ state).squeeze(2))
        state = state + key.unsqueeze(3) * value.unsqueeze(2)
        outputs.append(queries[step] @ state)
    dtype = q.dtype if past is None else past.dtype
    if not outputs:
        return q.new_zeros((batch, 0, q_heads * values.shape[3])), state.to(dtype)
    y = torch.stack(outputs, 1).reshape(batch, time, q_heads * values.shape[3])
    return y.to(q.dtype), state.to(dtype)


def _split(x: torch.Tensor, heads: int) -> torch.Tensor:
    """``[batch, time, heads size]`` to ``[time, batch, heads, size]`` in 32 bits."""
    return x.to(torch.float32).reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 1)
