"""Attention whose scores and probabilities are changed by graphs that the node holds."""

from __future__ import annotations

from typing import Any

import torch

from deep500.frameworks.pytorch.lowering._attention import head_factor, shared_heads, softmax_dtype
from deep500.frameworks.pytorch.translation import translate_subprogram
from deep500.networks.operator_node import OperatorNode

__all__ = ["FlexAttention"]


class FlexAttention(torch.nn.Module):
    """Attention over ``[batch, heads, sequence, size]`` with a node's graphs."""

    def __init__(self, node: OperatorNode) -> None:
        """Translate the node's graphs."""
        super().__init__()
        self._scale: float | None = node.attributes.get("scale")
        self._precision = softmax_dtype(node.attributes.get("softmax_precision"))
        self._captured = node.captured
        self._names = {name: graph.captured for name, graph in node.graphs.items()}
        for name, graph in node.graphs.items():
            self.add_module(name, translate_subprogram(graph))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *captured: Any) -> torch.Tensor:
        """Return attention; the softmax has at least 32 bits unless the node says otherwise."""
        around = dict(zip(self._captured, captured))
        factor = head_factor(q.shape[3], self._scale)
        scores = (q * factor) @ (shared_heads(k, q.shape[1]) * factor).transpose(2, 3)
        wide = self._precision or (torch.float64 if q.dtype == torch.float64 else torch.float32)
        scores = self._changed("score_mod", scores.to(wide), around)
        probabilities = self._changed("prob_mod", torch.softmax(scores, -1), around)
        return (probabilities @ shared_heads(v, q.shape[1]).to(wide)).to(v.dtype)

    def _changed(self, name: str, x: torch.Tensor, around: dict[str, Any]) -> torch.Tensor:
        if name not in self._names:
            return x
        (result,) = getattr(self, name)(x, *(around[outer] for outer in self._names[name]))
        changed: torch.Tensor = result.to(x.dtype)
        return changed
