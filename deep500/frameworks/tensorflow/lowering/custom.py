"""Operators that a user writes."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from deep500.frameworks.tensorflow.custom_operator import custom_op
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.custom_node import node_operator
from deep500.networks.operator_node import OperatorNode
from deep500.operators.custom.custom_op import CUSTOM_DOMAIN

__all__ = ["custom"]


@lowerings.register("*", since=1, domain=CUSTOM_DOMAIN)
def custom(node: OperatorNode, *tensors: tf.Tensor | None) -> Any:
    """Run the operator of the node's name."""
    return custom_op(node_operator(node))(*tensors)
