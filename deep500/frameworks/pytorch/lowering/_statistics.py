"""Running statistics of batch normalisation, with gradients."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from deep500.frameworks.pytorch._recording import recorded

__all__ = ["drop_unused_gradients", "with_gradients"]


class _Running(torch.autograd.Function):
    """Passes running statistics on that a kernel computed, and differentiates them.

    ``mean' = m mean + (1 - m) sum(x) / n`` and ``var' = m var + (1 - m) sum((x - sum(x) / n)^2) / n`` for n values a
    channel.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        mean: torch.Tensor,
        var: torch.Tensor,
        next_mean: torch.Tensor,
        next_var: torch.Tensor,
        momentum: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.save_for_backward(x)
        ctx.momentum = momentum
        return next_mean.view_as(next_mean), next_var.view_as(next_var)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        by_mean, by_var = gradients
        (x,) = ctx.saved_tensors
        by_x = None
        if ctx.needs_input_grad[0]:
            axes = [0, *range(2, x.dim())]
            shape = (1, -1, *(1,) * (x.dim() - 2))
            share = (1.0 - ctx.momentum) / max(x.numel() // max(x.shape[1], 1), 1)
            wide = x.to(by_mean.dtype)
            centred = wide - wide.mean(axes, keepdim=True)
            by_x = (share * (by_mean.reshape(shape) + 2.0 * centred * by_var.reshape(shape))).to(x.dtype)
        return by_x, ctx.momentum * by_mean, ctx.momentum * by_var, None, None, None


@recorded
def with_gradients(
    x: torch.Tensor,
    mean: torch.Tensor,
    var: torch.Tensor,
    next_mean: torch.Tensor,
    next_var: torch.Tensor,
    momentum: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the next running statistics, which are differentiable by what they were computed from."""
    if torch.is_grad_enabled() and (x.requires_grad or mean.requires_grad or var.requires_grad):
        results: tuple[torch.Tensor, torch.Tensor] = _Running.apply(x, mean, var, next_mean, next_var, momentum)
        return results
    return next_mean, next_var


def drop_unused_gradients(graph: fx.Graph, outputs: int) -> None:
    """Take running statistics as they are computed where nothing but the next state depends on them.

    A state is kept for the next run and never differentiated.

    Args:
        graph: The graph; it is changed.
        outputs: Number of its results that are outputs; the others are states.
    """
    (end,) = graph.find_nodes(op="output")
    results = end.args[0]
    assert isinstance(results, tuple)
    differentiable = set(results[:outputs])
    for node in graph.find_nodes(op="call_function", target=with_gradients.__wrapped__):  # type: ignore[attr-defined]
        entries = list(node.users)
        if any(e.target is not operator.getitem or set(e.users) != {end} or e in differentiable for e in entries):
            continue
        for entry in entries:
            entry.replace_all_uses_with(node.args[3 + entry.args[1]])
            graph.erase_node(entry)
        graph.erase_node(node)
