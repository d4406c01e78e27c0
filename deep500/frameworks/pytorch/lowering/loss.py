"""Losses."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._known import known_dtype, wants
from deep500.networks.operator_node import OperatorNode
from deep500.operators.attributes import choice

__all__: list[str] = []

#: PyTorch wants a label to ignore in any case; with this one, no label that occurs is silently left out.
_IGNORE_NONE = -(2**63)


@lowerings.register("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    node: OperatorNode, scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None = None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy between the softmax of ``[N, C, D1, ...]`` and class numbers ``[N, D1, ...]``.

    Source: ONNX SoftmaxCrossEntropyLoss-13.
    """
    if weights is None and not wants(node, 1):
        ignore, reduction = _settings(node)
        return F.cross_entropy(scores, _long(node, labels), ignore_index=ignore, reduction=reduction)
    log_prob = torch.log_softmax(scores, 1)
    return _negative_log_likelihood(node, log_prob, labels, weights), log_prob


@lowerings.register("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(
    node: OperatorNode, log_prob: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None = None
) -> torch.Tensor:
    """``-log_prob[n, label, ...]`` of ``[N, C, D1, ...]``, weighted. Source: ONNX NegativeLogLikelihoodLoss-22."""
    return _negative_log_likelihood(node, log_prob, labels, weights)


def _settings(node: OperatorNode) -> tuple[int, str]:
    """Return the label to ignore, and the reduction."""
    reduction = choice(node.op_type, "reduction", node.attributes.get("reduction", "mean"), ("mean", "sum", "none"))
    return node.attributes.get("ignore_index", _IGNORE_NONE), reduction


def _long(node: OperatorNode, labels: torch.Tensor) -> torch.Tensor:
    return labels if known_dtype(node, 1) == "int64" else labels.long()


def _negative_log_likelihood(
    node: OperatorNode, log_prob: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None
) -> torch.Tensor:
    """Return the loss; with weights written out, since PyTorch's own is not differentiable by them."""
    ignore, reduction = _settings(node)
    labels = _long(node, labels)
    if weights is None:
        return F.nll_loss(log_prob, labels, ignore_index=ignore, reduction=reduction)
    counted = labels != ignore
    safe = torch.where(counted, labels, 0)
    weight = torch.where(counted, weights[safe], 0.0)
    picked = torch.gather(log_prob, 1, safe.unsqueeze(1)).squeeze(1)
    loss = -weight * torch.where(counted, picked, 0.0)  # what stands at ignored labels may be NaN
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / weight.sum()
