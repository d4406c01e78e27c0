"""Losses."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

#: PyTorch wants a label to ignore in any case; with this one, no label that occurs is silently left out.
_IGNORE_NONE = -(2**63)


@lowerings.register("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    node: OperatorNode, scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None = None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy between the softmax of ``[N, C, D1, ...]`` and class numbers ``[N, D1, ...]``."""
    ignore = node.attributes.get("ignore_index", _IGNORE_NONE)
    reduction = node.attributes.get("reduction", "mean")
    label_type = node.input_types[1]
    if label_type is None or label_type.dtype != "int64":
        labels = labels.long()
    wants_log_prob = len(node.outputs) > 1 and node.outputs[1]
    if weights is None and not wants_log_prob:
        return F.cross_entropy(scores, labels, ignore_index=ignore, reduction=reduction)
    log_prob = torch.log_softmax(scores, 1)
    if weights is None:
        loss = F.nll_loss(log_prob, labels, ignore_index=ignore, reduction=reduction)
    else:
        loss = _weighted(log_prob, labels, weights, ignore, reduction)
    return (loss, log_prob) if wants_log_prob else loss


def _weighted(
    log_prob: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, ignore: int, reduction: str
) -> torch.Tensor:
    """Return the weighted loss, written out since PyTorch's own is not differentiable by the weights."""
    counted = labels != ignore
    safe = torch.where(counted, labels, 0)
    weight = torch.where(counted, weights[safe], 0.0)
    picked = torch.gather(log_prob, 1, safe.unsqueeze(1)).squeeze(1)
    loss = -weight * torch.where(counted, picked, 0.0)  # scores of ignored labels may hold NaN
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / weight.sum()
