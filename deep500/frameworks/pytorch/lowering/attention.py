"""Attention."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch._recording import call_module, spread
from deep500.frameworks.pytorch.lowering import _attention as written
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._flex_attention import FlexAttention
from deep500.frameworks.pytorch.lowering._known import known_dtype, known_shape, same_dtype, wants
from deep500.frameworks.pytorch.lowering._linear_attention import linear_recurrence
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

_DOUBLE = 11  # ONNX' number of float64


@lowerings.register("Attention", since=23)
def attention(
    node: OperatorNode,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    past_key: torch.Tensor | None = None,
    past_value: torch.Tensor | None = None,
    lengths: torch.Tensor | None = None,
) -> tuple[Any, ...]:
    """``softmax(softcap(scale q k^T) + mask) v`` over heads; the keys and values so far, and scores.

    Source: ONNX Attention-25.
    """
    packed = _is_packed(node)
    if packed:
        q_heads, kv_heads = node.attributes["q_num_heads"], node.attributes["kv_num_heads"]
        q, k, v = _split(node, 0, q, q_heads), _split(node, 1, k, kv_heads), _split(node, 2, v, kv_heads)
    if past_key is not None and past_value is not None:
        k, v = torch.cat((past_key, k), 2), torch.cat((past_value, v), 2)
    bias = _bias(node, q, k, mask, past_key, lengths)
    scale, softcap = node.attributes.get("scale"), node.attributes.get("softcap", 0.0)
    precision = node.attributes.get("softmax_precision")
    plain = not softcap and (precision != _DOUBLE or known_dtype(node, 0) == "float64") and same_dtype(node, 0, 2)
    if plain and not wants(node, 3):
        y, scores = _fused(node, q, k, v, bias, scale), None
    else:
        mode = node.attributes.get("qk_matmul_output_mode", 0)
        y, scores = spread(written.attend(q, k, v, bias, scale, softcap, precision, mode), 2)
    y = torch.flatten(torch.permute(y, (0, 2, 1, 3)), 2) if packed else y
    return (y, k, v, scores) if wants(node, 3) else (y, k, v)


def _is_packed(node: OperatorNode) -> bool:
    """Whether the heads are packed in the last of three axes."""
    shapes = [shape for shape in (known_shape(node, index) for index in range(3)) if shape is not None]
    rank = len(shapes[0]) if shapes else 3 if "q_num_heads" in node.attributes else 4
    if rank == 3 and not {"q_num_heads", "kv_num_heads"} <= set(node.attributes):
        raise InvalidNetworkError(
            f"{node.label} has inputs of rank 3, which need the attributes q_num_heads and kv_num_heads."
        )
    return rank == 3


def _split(node: OperatorNode, index: int, x: Any, heads: int) -> Any:
    """Return ``[batch, sequence, heads size]`` as ``[batch, heads, sequence, size]``, without a copy."""
    return torch.permute(_with_heads(node, index, x, heads), (0, 2, 1, 3))


def _with_heads(node: OperatorNode, index: int, x: Any, heads: int) -> Any:
    """Return ``[batch, sequence, heads size]`` as ``[batch, sequence, heads, size]``."""
    shape = known_shape(node, index) or (None, None, None)
    batch, sequence, width = (size if isinstance(size, int) else x.size(axis) for axis, size in enumerate(shape))
    return torch.reshape(x, (batch, sequence, heads, width // heads))


def _bias(node: OperatorNode, q: Any, k: Any, mask: Any, past: Any, lengths: Any) -> Any:
    """Return what says which keys a query sees, ``True`` for PyTorch's own causal mask, ``None`` for all of them."""
    causal = bool(node.attributes.get("is_causal", 0))
    left, right = node.attributes.get("left_window_size", -1), node.attributes.get("right_window_size", -1)
    windows = left >= 0 or right >= 0
    if mask is None and lengths is None and not windows and (not causal or past is None):
        return True if causal else None
    if not causal and not windows and lengths is None and _mask_fits(node):
        return mask
    return written.key_mask(q, k, mask, past, lengths, causal, left, right)


def _mask_fits(node: OperatorNode) -> bool:
    """Whether PyTorch's kernels take the mask as it is: all keys, two or four axes, bool or the queries' dtype."""
    mask, keys = known_shape(node, 3), known_shape(node, 1)
    if mask is None or keys is None or node.is_given(4) or len(mask) not in (2, 4):
        return False
    total = keys[1] if len(keys) == 3 else keys[2]
    return total is not None and mask[-1] == total and known_dtype(node, 3) in ("bool", known_dtype(node, 0))


def _fused(node: OperatorNode, q: Any, k: Any, v: Any, bias: Any, scale: float | None) -> Any:
    """Attention by PyTorch's kernels."""
    shapes = [known_shape(node, 0), known_shape(node, 1)]
    heads = [node.attributes.get("q_num_heads"), node.attributes.get("kv_num_heads")]
    if all(shape is not None and len(shape) == 4 for shape in shapes):
        heads = [shape[1] if shape is not None and isinstance(shape[1], int) else None for shape in shapes]
    shared: Any = heads[0] != heads[1] if None not in heads else q.size(1) != k.size(1)
    masks: dict[str, Any] = {"is_causal": True} if bias is True else {} if bias is None else {"attn_mask": bias}
    size = _head_size(node)
    if scale is not None or size is not None:
        masks["scale"] = written.head_factor(size or 1, scale) ** 2
    if shared is not False:
        masks["enable_gqa"] = shared
    if known_dtype(node, 0) == "float16":
        return written.attend_in_half(q, k, v, **masks)
    return F.scaled_dot_product_attention(q, k, v, **masks)


def _head_size(node: OperatorNode) -> int | None:
    """Return the number of features of a head, ``None`` if it is not known."""
    shape = known_shape(node, 0)
    if shape is None or not isinstance(shape[-1], int):
        return None
    return shape[-1] // (node.attributes["q_num_heads"] if len(shape) == 3 else 1)


@lowerings.register("FlexAttention", since=1, domain="ai.onnx.preview")
def flex_attention(node: OperatorNode, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *captured: Any) -> Any:
    """``prob_mod(softmax(score_mod(scale q k^T))) v`` with a node's graphs. Source: ONNX FlexAttention-1 (preview)."""
    if not node.graphs and node.attributes.get("softmax_precision") != _DOUBLE:
        return _fused(node, q, k, v, None, node.attributes.get("scale"))
    return call_module(FlexAttention(node), (q, k, v, *captured))


@lowerings.register("LinearAttention", since=27)
def linear_attention(
    node: OperatorNode,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    past: torch.Tensor | None = None,
    decay: torch.Tensor | None = None,
    beta: torch.Tensor | None = None,
) -> tuple[Any, ...]:
    """Attention by a state that every step decays, corrects and reads. Source: ONNX LinearAttention-27."""
    rule = node.attributes.get("update_rule", "gated_delta")
    wanted = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
    if wanted.get(rule) != (decay is not None, beta is not None):
        raise InvalidNetworkError(
            f"{node.label} has update_rule={rule!r} and {'' if decay is not None else 'no '}decay, "
            f"{'' if beta is not None else 'no '}beta; accepted are 'linear' without both, 'gated' with decay, 'delta' "
            f"with beta and 'gated_delta' with both."
        )
    heads = (node.attributes["q_num_heads"], node.attributes["kv_num_heads"])
    scale = node.attributes.get("scale", 0.0)
    return spread(linear_recurrence(q, k, v, past, decay, beta, heads, scale), 2)


@lowerings.register("RotaryEmbedding", since=23)
def rotary_embedding(
    node: OperatorNode,
    x: torch.Tensor,
    cosine: torch.Tensor,
    sine: torch.Tensor,
    positions: torch.Tensor | None = None,
) -> torch.Tensor:
    """Pairs of features, rotated by angles that depend on the position. Source: ONNX RotaryEmbedding-23."""
    if positions is not None:
        cosine, sine = cosine[positions], sine[positions]
    shape = known_shape(node, 0)
    packed = len(shape) == 3 if shape is not None else "num_heads" in node.attributes
    if packed:
        x = _with_heads(node, 0, x, node.attributes["num_heads"])
    axis = 2 if packed else 1  # the axis of the heads
    cosine, sine = torch.unsqueeze(cosine, axis), torch.unsqueeze(sine, axis)
    width = node.attributes.get("rotary_embedding_dim", 0)
    rotated = torch.narrow(x, 3, 0, width) if width else x
    if node.attributes.get("interleaved", 0):
        a, b = spread(torch.unbind(torch.unflatten(rotated, 3, (-1, 2)), 4), 2)
    else:
        a, b = spread(torch.chunk(rotated, 2, 3), 2)
    real, imaginary = cosine * a - sine * b, sine * a + cosine * b
    if node.attributes.get("interleaved", 0):
        y = torch.flatten(torch.stack((real, imaginary), 4), 3)
        y = torch.cat((y, torch.narrow(x, 3, width, x.size(3) - width)), 3) if width else y
    else:
        rest = (torch.narrow(x, 3, width, x.size(3) - width),) if width else ()
        y = torch.cat((real, imaginary, *rest), 3)
    return torch.flatten(y, 2) if packed else y
