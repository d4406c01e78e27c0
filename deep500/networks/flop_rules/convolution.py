"""Convolutions."""

from __future__ import annotations

import math

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import has_input, input_shape, input_size, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@flop_rules.register("Conv", since=1)
def conv(node: OperatorNode) -> int:
    """``2 N M o1 o2 ... (C / group) k1 k2 ...``, and one addition an output element for the bias."""
    taps = math.prod(input_shape(node, 1)[1:])
    return output_size(node) * (2 * taps + has_input(node, 2))


@flop_rules.register("ConvTranspose", since=1)
def conv_transpose(node: OperatorNode) -> int:
    """``2 N C d1 d2 ... (M / group) k1 k2 ...``, and one addition an output element for the bias."""
    taps = math.prod(input_shape(node, 1)[1:])
    return 2 * input_size(node) * taps + has_input(node, 2) * output_size(node)
