"""Reductions over axes."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_size, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@flop_rules.register("ReduceSum", since=1)
@flop_rules.register("ReduceMean", since=1)
@flop_rules.register("ReduceMax", since=1)
@flop_rules.register("ReduceMin", since=1)
@flop_rules.register("ReduceProd", since=1)
@flop_rules.register("ArgMax", since=1)
@flop_rules.register("ArgMin", since=1)
@flop_rules.register("CumSum", since=11)
def reduce(node: OperatorNode) -> int:
    """One for every input element."""
    return input_size(node)


@flop_rules.register("ReduceSumSquare", since=1)
@flop_rules.register("ReduceL1", since=1)
def reduce_twice(node: OperatorNode) -> int:
    """Two for every input element: its square or magnitude, and the sum."""
    return 2 * input_size(node)


@flop_rules.register("ReduceL2", since=1)
def reduce_l2(node: OperatorNode) -> int:
    """Two for every input element, and the square root of every output element."""
    return 2 * input_size(node) + output_size(node)


@flop_rules.register("ReduceLogSum", since=1)
def reduce_log_sum(node: OperatorNode) -> int:
    """One for every input element, and the logarithm of every output element."""
    return input_size(node) + output_size(node)


@flop_rules.register("ReduceLogSumExp", since=1)
def reduce_log_sum_exp(node: OperatorNode) -> int:
    """Two for every input element, and the logarithm of every output element."""
    return 2 * input_size(node) + output_size(node)
