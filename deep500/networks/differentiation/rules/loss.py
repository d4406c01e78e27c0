"""Derivatives of losses, by what they are defined as."""

from __future__ import annotations

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import defined_by_others

__all__: list[str] = []


@defined_by_others("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy(node: ReversedNode) -> tuple[Value, ...]:
    """The likelihood of the label in the softmax along axis 1. Source: ONNX SoftmaxCrossEntropyLoss-13."""
    logarithms = node.builder.op("LogSoftmax", node.input(0), axis=1)
    return _likelihood(node, logarithms), logarithms


@defined_by_others("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood(node: ReversedNode) -> Value:
    """``-w_l x_l`` for the label l, zero where it is to be ignored. Source: ONNX NegativeLogLikelihoodLoss-22."""
    return _likelihood(node, node.input(0))


def _likelihood(node: ReversedNode, logarithms: Value) -> Value:
    write, labels, weight = node.builder, node.input(1), node.optional(2)
    ignored = labels.equals(node.attributes["ignore_index"]) if "ignore_index" in node.attributes else None
    safe = labels if ignored is None else write.where(ignored, 0, labels)
    axis = write.ints(1)
    picked = write.op(
        "Squeeze", write.op("GatherElements", logarithms, write.op("Unsqueeze", safe, axis), axis=1), axis
    )
    losses = -picked
    weights = None
    if weight is not None:
        weights = write.op("Gather", weight, safe, axis=0)
    elif ignored is not None:
        weights = write.ones_like(picked)
    if ignored is not None and weights is not None:
        weights = write.where(ignored, 0, weights)
    if weights is not None:
        losses = losses * weights
    reduction = node.get("reduction", "mean")
    if reduction == "none":
        return losses
    total = write.op("ReduceSum", losses, keepdims=0)
    if reduction == "sum":
        return total
    if weights is None:
        return total / write.cast_like(write.op("Size", losses), total)
    return total / write.op("ReduceSum", weights, keepdims=0)
