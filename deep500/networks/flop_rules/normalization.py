"""Normalisation in inference."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import has_input, input_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@flop_rules.register("BatchNormalization", since=1)
def batch_normalization(node: OperatorNode) -> int:
    """One multiply-add an element: ``x * a + b`` with ``a`` and ``b`` of each channel folded beforehand."""
    return 2 * input_size(node)


@flop_rules.register("InstanceNormalization", since=1)
@flop_rules.register("GroupNormalization", since=18)
def instance_normalization(node: OperatorNode) -> int:
    """Seven an element: mean 1, difference 1, variance 2, division 1, scale and bias 2."""
    return 7 * input_size(node)


@flop_rules.register("LayerNormalization", since=17)
def layer_normalization(node: OperatorNode) -> int:
    """Six an element: mean 1, difference 1, variance 2, division 1, scale 1; one more with a bias."""
    return (6 + has_input(node, 2)) * input_size(node)


@flop_rules.register("RMSNormalization", since=23)
def rms_normalization(node: OperatorNode) -> int:
    """Four an element: squares and their mean 2, division 1, scale 1."""
    return 4 * input_size(node)
