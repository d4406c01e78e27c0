"""Operators that a user writes."""

from __future__ import annotations

from typing import Any

import torch

from deep500.frameworks.pytorch.custom_operator import custom_op
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.custom_node import node_operator
from deep500.networks.operator_node import OperatorNode
from deep500.operators.custom.custom_op import CUSTOM_DOMAIN

__all__: list[str] = []


@lowerings.register("*", since=1, domain=CUSTOM_DOMAIN)
def custom(node: OperatorNode, *tensors: torch.Tensor | None) -> Any:
    """Run the operator of the node's name."""
    op = node_operator(node)
    outputs = custom_op(op)(*tensors)
    return outputs if op.output_count == 1 else tuple(outputs[index] for index in range(op.output_count))
