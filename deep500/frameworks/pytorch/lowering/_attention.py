"""Attention, written out: what PyTorch's fused kernels do not offer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._recording import recorded

__all__ = ["attend", "attend_in_half", "head_factor", "key_mask", "shared_heads", "softmax_dtype"]

#: Element types of ONNX in which the softmax may be asked for.
_PRECISIONS = {1: torch.float32, 10: torch.float16, 11: torch.float64, 16: torch.bfloat16}

#: What the output of scores shows (``qk_matmul_output_mode``).
_CAPPED, _WITH_BIAS, _PROBABILITIES = 1, 2, 3


@recorded
def key_mask(
    q: torch.Tensor,
    k: torch.Tensor,
    mask: torch.Tensor | None,
    past: torch.Tensor | None,
    lengths: torch.Tensor | None,
    causal: bool,
    left: int,
    right: int,
) -> torch.Tensor | None:
    """Return which keys a query sees (bool), or what is added to the scores; ``None`` where it sees all.

    A query at place ``p = offset + i`` sees keys from ``p - left`` to ``p + right``, where a causal one ends at p. The
    offset is the number of keys before the first query.
    """
    queries, keys = q.shape[2], k.shape[2]
    offset: int | torch.Tensor = 0
    if past is not None:
        offset = past.shape[2]
    elif lengths is not None:
        offset = lengths.reshape(-1, 1, 1, 1) - queries
    places = torch.arange(keys, device=q.device)
    allowed: torch.Tensor | None = None
    right = 0 if causal else right
    newest = queries == 1 and isinstance(offset, int) and offset == keys - 1  # one query that sees all before it
    if left >= 0 or (right >= 0 and not newest):
        distance = places - (torch.arange(queries, device=q.device).unsqueeze(1) + offset)
        allowed = distance >= -left if left >= 0 else None
        if right >= 0:
            allowed = distance <= right if allowed is None else allowed & (distance <= right)
    if lengths is not None:
        inside = places < lengths.reshape(-1, 1, 1, 1)
        allowed = inside if allowed is None else allowed & inside
    if mask is None:
        return allowed
    missing = keys - mask.shape[-1]
    is_bool = mask.dtype == torch.bool
    bias = mask if is_bool else mask.to(q.dtype)
    if missing:
        bias = F.pad(bias, (0, missing), value=False if is_bool else float("-inf"))
    bias = bias.reshape((1,) * (4 - bias.dim()) + tuple(bias.shape))
    if allowed is None:
        return bias
    return bias & allowed if is_bool else torch.where(allowed, bias, float("-inf"))


@recorded
def attend_in_half(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    """Attention in half precision; on a processor in 32 bits, since PyTorch's kernel rounds the probabilities there."""
    if q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, **options)
    mask = options.get("attn_mask")
    if mask is not None and mask.dtype != torch.bool:
        options["attn_mask"] = mask.to(torch.float32)
    wide = torch.float32
    return F.scaled_dot_product_attention(q.to(wide), k.to(wide), v.to(wide), **options).to(q.dtype)


def head_factor(size: int, scale: float | None) -> float:
    """Return ``sqrt(scale)``, by which queries and keys are multiplied; by default ``scale = 1 / sqrt(size)``.

    ONNX' definition of attention computes it in 32 bits, whatever the dtype of the queries.
    """
    return float(np.sqrt(np.float32(1) / np.sqrt(np.float32(size)) if scale is None else np.float32(scale)))


def shared_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Return keys or values for every head of the queries: neighbouring heads share them."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def softmax_dtype(precision: int | None) -> torch.dtype | None:
    """Return the dtype of ONNX' number of it."""
    return None if precision is None else _PRECISIONS[precision]


@recorded
def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    bias: torch.Tensor | bool | None,
    scale: float | None,
    softcap: float,
    precision: int | None,
    mode: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention over ``[batch, heads, sequence, size]``, and scores as they are at some point on the way."""
    factor = head_factor(q.shape[3], scale)
    scores = (q * factor) @ (shared_heads(k, q.shape[1]) * factor).transpose(2, 3)
    shown = scores
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
        shown = scores if mode == _CAPPED else shown
    if bias is True:
        bias = torch.ones(scores.shape[2:], dtype=torch.bool, device=q.device).tril()
    empty = None
    if isinstance(bias, torch.Tensor):
        if bias.dtype == torch.bool:
            bias = torch.where(bias, 0.0, float("-inf")).to(scores.dtype)
        scores = scores + bias
        empty = torch.isneginf(bias).all(-1, keepdim=True)  # queries that see no key attend to nothing
    shown = scores if mode == _WITH_BIAS else shown
    wide = scores.to(softmax_dtype(precision) or scores.dtype)
    if empty is not None:
        wide = torch.where(empty, 0.0, wide)
    probabilities = torch.softmax(wide, -1)
    if empty is not None:
        probabilities = torch.where(empty, 0.0, probabilities)
    probabilities = probabilities.to(q.dtype)
    y = probabilities @ shared_heads(v, q.shape[1]).to(q.dtype)
    return y, probabilities if mode == _PROBABILITIES else shown
