"""Recurrent layers with a cell state."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import has_input, input_shape
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

#: Operations of an element of the state beside the sums of the gates: four activations, ``f c + i g``, and
#: ``o tanh(c)``.
_UPDATE = 4 + 3 + 2

#: Inputs of the biases and of the peepholes.
_BIAS, _PEEPHOLES = 3, 7


@flop_rules.register("LSTM", since=1)
def lstm(node: OperatorNode) -> int:
    """For every step, direction and unit: four gates of ``2 I + 2 H`` and a sum, two biases each; nine to update.

    Peepholes take a multiply-add for each of three gates.
    """
    first, second, width = input_shape(node, 0)  # steps and batch, in the order of the layout
    directions, _, hidden = input_shape(node, 2)
    gate = 2 * width + 2 * hidden + 1 + 2 * has_input(node, _BIAS)
    return first * second * directions * hidden * (4 * gate + _UPDATE + 6 * has_input(node, _PEEPHOLES))
