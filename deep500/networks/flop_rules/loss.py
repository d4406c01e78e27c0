"""Losses."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import has_input, input_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@flop_rules.register("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(node: OperatorNode) -> int:
    """A log-softmax (five an element, one a label) and the negative log-likelihood of the labels."""
    labels = input_size(node, 1)
    return 5 * input_size(node, 0) + labels + _likelihood(node, labels)


@flop_rules.register("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(node: OperatorNode) -> int:
    """A negation a label; one more to reduce them; with weights, one more to weigh and one to sum the weights."""
    return _likelihood(node, input_size(node, 1))


def _likelihood(node: OperatorNode, labels: int) -> int:
    reduction: str = node.attributes.get("reduction", "mean")
    weighted = has_input(node, 2)
    return labels * (1 + (reduction != "none") + weighted + (weighted and reduction == "mean"))
