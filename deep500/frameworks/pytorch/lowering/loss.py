"""Losses."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

#: PyTorch wants a label to ignore in any case; this one no class has.
_IGNORE_NONE = -100


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
    if len(node.outputs) == 1 or not node.outputs[1]:
        return F.cross_entropy(scores, labels, weights, ignore_index=ignore, reduction=reduction)
    log_prob = torch.log_softmax(scores, 1)
    return F.nll_loss(log_prob, labels, weights, ignore_index=ignore, reduction=reduction), log_prob
