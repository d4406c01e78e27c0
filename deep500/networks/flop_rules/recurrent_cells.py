"""Recurrent layers without a cell state: simple cells, and gated ones."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import has_input, input_shape
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

#: Operations of a gate's element beside its products: the sum of the two products, and the activation function.
_GATE = 2

#: Of a GRU's element beside its gates: reset times state, and ``(1 - z) h' + z h``, a difference, products and a sum.
_UPDATE = 5


def _steps(node: OperatorNode, gates: int) -> tuple[int, int]:
    """Return the operations of all gates over all steps, and the number of new states.

    The inputs are ``X`` (3 dimensions, steps and batch in front), ``W`` (``[directions, gates H, I]``) and ``R``.
    """
    first, second, width = input_shape(node, 0)
    directions, _, hidden = input_shape(node, 2)
    states = first * second * directions * hidden
    biases = 2 * has_input(node, 3)
    return gates * states * (2 * width + 2 * hidden + biases + _GATE), states


@flop_rules.register("RNN", since=1)
def simple_cell(node: OperatorNode) -> int:
    """``2 I + 2 H`` for every new state; two biases; the sum of both products and the activation function."""
    return _steps(node, 1)[0]


@flop_rules.register("GRU", since=1)
def gated_cell(node: OperatorNode) -> int:
    """Three gates of ``2 I + 2 H``, two biases, a sum and an activation; five more for every new state."""
    gates, states = _steps(node, 3)
    return gates + _UPDATE * states
