"""Deep500's operators as PyTorch's own, and PyTorch's functions as operators of Deep500."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import shown
from deep500.frameworks.pytorch._native_function import NativeFunctionOp
from deep500.frameworks.pytorch._native_kernels import register_native
from deep500.frameworks.pytorch._python_kernels import register_python
from deep500.frameworks.pytorch._registration import registered
from deep500.operators.custom import CustomOp, NativeOp

__all__ = ["custom_op", "custom_op_from_native"]


def custom_op(op: CustomOp) -> Callable[..., Any]:
    """Return an operator as a function of PyTorch's tensors.

    The function takes one tensor an input, ``None`` where an optional one is absent, and returns a tensor, or a tuple
    of several. It is an operator of PyTorch's dispatcher: autograd differentiates it, ``torch.compile`` and
    ``torch.export`` see one node, and it runs on CUDA's current stream.

    Native operators take tensors of any strides. Those in Python get NumPy arrays that share the memory of tensors on
    the processor and cannot be written to; on a GPU CuPy arrays where ``array_module`` says so, else copies. A function
    of PyTorch's own that was wrapped by :func:`custom_op_from_native` comes back as it was.

    A second derivative is an error unless the operator's library has a ``second``; forward-mode derivatives are one.

    Args:
        op: The operator, whose attributes must not change any more. The first native one of a PyTorch version takes
            half a minute, for an extension that serves all of them is compiled.

    Raises:
        OperatorError: What was given is no operator, or it has no inputs.
        CompileError: The operator or the extension cannot be compiled.

    Example:
        >>> import torch
        >>> from deep500.operators.custom import CustomPythonOp
        >>> class Cube(CustomPythonOp):
        ...     def forward(self, x):
        ...         return x**3
        ...     def backward(self, grads, fwd_inputs, fwd_outputs):
        ...         return grads[0] * 3 * fwd_inputs[0] ** 2
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> custom_op(Cube())(x).sum().backward()
        >>> x.grad
        tensor([ 3., 12.])
    """
    _check_operator(op)
    if isinstance(op, NativeFunctionOp):
        return op.run_native
    if op.input_count == 0:
        raise OperatorError(f"{op.name} has no inputs; PyTorch's operators need one, to know the device.")
    return registered(op, register_native if isinstance(op, NativeOp) else register_python)


def custom_op_from_native(
    function: Callable[..., Any],
    inputs: Sequence[TensorDescriptor] | None = None,
    outputs: Sequence[TensorDescriptor] | None = None,
    *,
    name: str | None = None,
) -> CustomOp:
    """Return a function of PyTorch's tensors as an operator, to be validated and measured like any other.

    NumPy arrays give NumPy arrays; tensors give tensors, with nothing but the function itself in between. The backward
    is autograd's: of tensors that come from the forward it is what PyTorch would do; for NumPy arrays, and tensors that
    record nothing, the forward runs once more.

    Args:
        function: A function of tensors, such as ``torch.nn.functional.conv2d``; ``functools.partial`` sets arguments
            that are no tensors.
        inputs: A descriptor for every input; their number is checked.
        outputs: A descriptor for every output, needed where there are several.
        name: Name of the operator; by default the function's.

    Raises:
        OperatorError: It is no function, or the name is none that an operator may have.
        InvalidInputError: A descriptor is none.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> softplus = custom_op_from_native(torch.nn.functional.softplus)
        >>> softplus(np.array([0.0, 100.0]))
        array([  0.69314718, 100.        ])
    """
    return NativeFunctionOp(function, inputs, outputs, name)


def _check_operator(op: Any) -> None:
    if not isinstance(op, CustomOp):
        hint = " Create it first, with its attributes." if isinstance(op, type) else ""
        raise OperatorError(f"custom_op was given {shown(op)}; accepted is an object of a CustomOp.{hint}")
