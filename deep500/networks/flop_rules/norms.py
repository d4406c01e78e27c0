"""Lengths of vectors, and normalisation by them or by statistics of neighbours."""

from __future__ import annotations

import math

from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_size, output_size
from deep500.networks.operator_node import OperatorNode
from deep500.networks.window import read_window

__all__: list[str] = []


@flop_rules.register("LpNormalization", since=1)
def lp_normalization(node: OperatorNode) -> int:
    """Three an element: its square or magnitude, the sum, the division."""
    return 3 * input_size(node)


@flop_rules.register("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: OperatorNode) -> int:
    """Five an element: mean 1, difference 1, variance 2, division 1."""
    return 5 * input_size(node)


@flop_rules.register("LRN", since=1)
def local_response_normalization(node: OperatorNode) -> int:
    """``size`` additions of squares an element, its square, and four: scale, bias, power, division."""
    return (int(node.attributes["size"]) + 5) * input_size(node)


@flop_rules.register("LpPool", since=1)
def lp_pool(node: OperatorNode) -> int:
    """Two (power and sum) for every position of the window, and one root, for every output element."""
    return output_size(node) * (2 * math.prod(read_window(node).kernel) + 1)


@flop_rules.register("GlobalLpPool", since=1)
def global_lp_pool(node: OperatorNode) -> int:
    """Two for every input element (power and sum), and one root for every output element."""
    return 2 * input_size(node) + output_size(node)
