"""Contractions that are no plain matrix products: Einstein's summation, and determinants."""

from __future__ import annotations

import math

from deep500.core.errors import InvalidNetworkError
from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_shape, output_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@flop_rules.register("Einsum", since=12)
def einsum(node: OperatorNode) -> int:
    """``n`` (products and addition) at every point of all indices, where ``n`` operands are multiplied and summed.

    One less where no index is summed. It is the cost of the formula as it stands, without an order of contraction; of
    two operands that is ``2 M N K``.
    """
    left, arrow, right = str(node.attributes["equation"]).replace(" ", "").partition("->")
    terms = left.split(",")
    sizes: dict[str, int] = {}
    batch: list[int] = []
    for index, term in enumerate(terms):
        shape = input_shape(node, index)
        before, dots, after = term.partition("...")
        hidden = len(shape) - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise InvalidNetworkError(f"The equation of {node.label} does not fit its input {index}, {list(shape)}.")
        for label, size in zip(before + after, (*shape[: len(before)], *shape[len(before) + hidden :])):
            sizes[label] = max(size, sizes.get(label, 1)) if size else 0
        own = shape[len(before) : len(before) + hidden]
        batch = list(own) if len(own) > len(batch) else batch
    points = math.prod(sizes.values()) * math.prod(batch)
    kept = set(right) if arrow else {label for label in sizes if left.count(label) == 1}
    return points * (len(terms) if set(sizes) - kept else len(terms) - 1)


@flop_rules.register("Det", since=11)
def determinant(node: OperatorNode) -> int:
    """``2 n^3 / 3`` for every matrix, rounded: its LU decomposition."""
    side = input_shape(node)[-1]
    return output_size(node) * round(2 * side**3 / 3)
