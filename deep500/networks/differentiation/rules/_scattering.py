"""What is backward of operators that reduce the elements of a tensor together with updates."""

from __future__ import annotations

from collections.abc import Callable

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode

__all__ = ["scattering_back"]

Pick = Callable[[Value], Value]
Put = Callable[[Value, Value, str], Value]


def scattering_back(node: ReversedNode, g: Value, pick: Pick, put: Put) -> list[Value | None]:
    """Return the gradients by the data, the indices and the updates.

    Args:
        node: A node whose inputs are these.
        g: Gradient by the result.
        pick: Returns what lies at the places of the updates.
        put: Reduces a tensor together with updates.
    """
    reduction = node.get("reduction", "none")
    if reduction == "mul":
        return _product_back(node, g, pick, put)
    if reduction in ("max", "min"):
        return _extreme_back(node, g, pick, put)
    by_updates = pick(g) if node.wants(2) else None
    if reduction == "add" or not node.wants(0):
        return [g, None, by_updates]
    return [put(g, node.builder.zeros_like(node.input(2)), "none"), None, by_updates]


def _product_back(node: ReversedNode, g: Value, pick: Pick, put: Put) -> list[Value | None]:
    """Return g times all factors but one; where one is 0, without dividing by it."""
    write, data, updates = node.builder, node.input(0), node.input(2)
    is_zero = updates.equals(0)
    product = put(write.ones_like(data), write.where(is_zero, 1, updates), "mul")
    zeros = put(write.zeros_like(data), write.cast_like(is_zero, updates), "add")
    by_data = write.where(zeros > 0, 0, g * product)
    if not node.wants(2):
        return [by_data, None, None]
    whole = pick(g * data * product)
    others = write.where(is_zero, whole, whole / write.where(is_zero, 1, updates))
    is_alone = (pick(zeros) - write.cast_like(is_zero, updates)) <= 0
    return [by_data, None, write.where(is_alone, others, 0)]


def _extreme_back(node: ReversedNode, g: Value, pick: Pick, put: Put) -> list[Value | None]:
    """Share g evenly among all that are equal to the largest, or smallest."""
    write, y = node.builder, node.output()
    stays = write.cast_like(node.input(0).equals(y), g)
    wins = write.cast_like(node.input(2).equals(pick(y)), g)
    share = g / put(stays, wins, "add")
    return [share * stays, None, pick(share) * wins]
