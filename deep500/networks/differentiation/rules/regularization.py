"""Derivative of dropout."""

from __future__ import annotations

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule

__all__: list[str] = []


@reverse_rule("Dropout", since=12)
def dropout(node: ReversedNode, g: Value | None, *others: Value | None) -> Value | None:
    """``dx = g mask / (1 - ratio)`` in training, by the mask of the forward; else ``g``. Source: ONNX Dropout-22."""
    write, flag = node.builder, node.optional(2)
    known = node.constant(2)
    if g is None or flag is None or (known is not None and not known.item()):
        return g
    ratio = node.optional(1)
    left = 1.0 - (write.number(0.5, g) if ratio is None else write.cast_like(ratio, g))
    scaled = write.where(node.output(1), g / left, 0)
    return scaled if known is not None else write.where(flag, scaled, g)
