"""Operators that only move, copy, choose or describe data."""

from __future__ import annotations

from deep500.networks.flop_rules import flop_rules
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


def movement(node: OperatorNode) -> int:
    """Nothing. Dropout belongs here: in inference it is the identity."""
    return 0


for _name in (
    *("Cast", "CastLike", "Compress", "Concat", "Constant", "ConstantOfShape", "DepthToSpace", "Dropout", "Expand"),
    *("EyeLike", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "IsInf", "IsNaN", "NonZero", "OneHot"),
    *("Pad", "Reshape", "ReverseSequence", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze"),
    *("Tile", "Transpose", "Trilu", "Unsqueeze", "Where"),
):
    flop_rules.register(_name, since=1)(movement)
