"""The reference's version of an operator, as an operator again, so that it is validated like the operator itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deep500.frameworks.reference.custom_operator import custom_op, custom_op_from_native
from deep500.operators.custom.custom_op import CustomOp

__all__ = ["as_operator"]


def as_operator(op: CustomOp, *, through: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None) -> CustomOp:
    """Return what :func:`custom_op` makes of an operator as an operator again.

    NumPy has no derivatives, so its backward is the operator's.

    Args:
        op: The operator.
        through: What the function goes through first.

    Raises:
        CompileError: The operator cannot be compiled.
        OperatorError: It is no custom operator.
    """
    function = custom_op(op)
    wrapped = custom_op_from_native(
        function if through is None else through(function),
        backward=op.run_backward if op.differentiable else None,
        name=op.name,
    )
    wrapped.input_count, wrapped.output_count = op.input_count, op.output_count
    return wrapped
