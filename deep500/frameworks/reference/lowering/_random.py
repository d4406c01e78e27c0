"""Drawing at random: one operator of tensors from a law, which each lowering states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from deep500.networks.operator_node import OperatorNode
from deep500.networks.random_streams import node_stream
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Draw", "attribute_dtype"]


class Draw(Operator):
    """A tensor that is drawn; with a seed every run draws the same one. It has no gradient.

    Args:
        node: The node, of which the attribute ``seed`` is read.
        law: Draws the tensor, given the inputs and where the numbers come from.
    """

    def __init__(
        self, node: OperatorNode, law: Callable[[Sequence[OptionalArray], np.random.RandomState], Array]
    ) -> None:
        seed = node.attributes.get("seed")
        self._seed = None if seed is None or math.isnan(seed) else int(seed) % 2**32
        self._law = law
        self._stream = node_stream(node.outputs, None) if self._seed is None else None

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Draw the tensor."""
        return (self._law(inputs, self._stream or np.random.RandomState(self._seed)),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Return no gradients."""
        return (None,) * len(fwd_inputs)


def attribute_dtype(node: OperatorNode, default: Any) -> np.dtype[Any]:
    """Return the dtype that the attribute ``dtype`` says, else the default."""
    code = node.attributes.get("dtype")
    return np.dtype(default) if code is None else ir.DataType(code).numpy()
