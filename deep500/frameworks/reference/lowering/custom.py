"""Operators that a user writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.custom_node import node_operator
from deep500.networks.operator_node import OperatorNode
from deep500.operators.custom.custom_op import CUSTOM_DOMAIN, CustomOp, CustomPythonOp
from deep500.operators.operator import Operator, OptionalArray

__all__: list[str] = []


class _Checked(Operator):
    """A custom operator as the reference calls operators: what it returns is checked, and always a tuple."""

    def __init__(self, op: CustomOp) -> None:
        self.op = op

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        return self.op.run_forward(self._guarded(inputs))

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[Any, ...]:
        guarded = self._guarded
        return self.op.run_backward(guarded(grads), guarded(fwd_inputs), guarded(fwd_outputs))

    def _guarded(self, arrays: Sequence[OptionalArray]) -> Sequence[OptionalArray]:
        """Return arrays that code in Python cannot change by mistake: others read them, and so does the backward."""
        return list(map(_read_only, arrays)) if isinstance(self.op, CustomPythonOp) else arrays


def _read_only(array: OptionalArray) -> OptionalArray:
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


@lowerings.register("*", since=1, domain=CUSTOM_DOMAIN)
def lower(node: OperatorNode) -> Operator:
    """Return the operator of the node's name."""
    return _Checked(node_operator(node))
