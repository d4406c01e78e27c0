"""PyTorch's version of an operator, as an operator again, so that it is validated like the operator itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deep500.frameworks.pytorch._native_function import NativeFunctionOp
from deep500.frameworks.pytorch.custom_operator import custom_op
from deep500.operators.custom import CustomOp

__all__ = ["as_operator"]


def as_operator(op: CustomOp, *, through: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None) -> CustomOp:
    """Return what :func:`custom_op` makes of an operator as an operator that takes and returns NumPy arrays.

    Its forward is the function of PyTorch's tensors, and its backward is autograd's.

    Args:
        op: The operator.
        through: What the function goes through first, such as ``torch.compile``.

    Raises:
        CompileError: The operator cannot be compiled.
        OperatorError: It is no custom operator.

    Example:
        >>> import numpy as np
        >>> from deep500.operators.custom import CustomPythonOp
        >>> from deep500.operators.validation import test_op_gradient
        >>> class Double(CustomPythonOp):
        ...     def forward(self, x):
        ...         return 2 * x
        ...     def backward(self, grads, fwd_inputs, fwd_outputs):
        ...         return 2 * grads[0]
        >>> test_op_gradient(as_operator(Double()), [np.array([1.0, 3.0])]).passed
        True
    """
    function = custom_op(op)
    wrapped = NativeFunctionOp(function if through is None else through(function), name=op.name)
    wrapped.input_count, wrapped.output_count = op.input_count, op.output_count
    wrapped.differentiable = op.differentiable
    return wrapped
