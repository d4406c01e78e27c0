"""PyTorch's own functions as operators of Deep500, to validate and measure them like any other."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from deep500.core.errors import InvalidInputError, OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import message_of, shown
from deep500.frameworks.pytorch._arrays import to_array, to_tensor
from deep500.frameworks.pytorch._dtypes import dtype_name, torch_dtype
from deep500.operators.custom import CustomOp
from deep500.operators.custom._checks import check_name

__all__ = ["NativeFunctionOp"]

#: Found a little faster than ``torch.Tensor``, which small functions notice.
_Tensor = torch.Tensor

#: What PyTorch raises for arguments that a function does not take.
_REFUSALS = (RuntimeError, TypeError, ValueError, IndexError)


class NativeFunctionOp(CustomOp):
    """A function of PyTorch's tensors as an operator.

    NumPy arrays give NumPy arrays, tensors give tensors: then nothing but the function itself runs, and autograd
    records it as usual.

    Attributes:
        function: The function.
        input_descriptors: Descriptors of the inputs, ``None`` where none were given.
        output_descriptors: Descriptors of the outputs, ``None`` where none were given.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[TensorDescriptor] | None = None,
        outputs: Sequence[TensorDescriptor] | None = None,
        name: str | None = None,
    ) -> None:
        """Take a function, and perhaps descriptors of its tensors and a name."""
        if not callable(function):
            raise OperatorError(f"{shown(function)} cannot be wrapped; accepted is a function of torch.Tensor.")
        self.function = function
        self.name = _name(function) if name is None else check_name(name)
        self.input_descriptors = _checked(self.name, "inputs", inputs)
        self.output_descriptors = _checked(self.name, "outputs", outputs)
        if self.input_descriptors is not None:
            self.input_count = len(self.input_descriptors)
        if self.output_descriptors is not None:
            self.output_count = len(self.output_descriptors)
        #: The function itself where it returns a single tensor, so that nothing stands between it and its caller.
        self.run_native: Callable[..., Any] = function if self.output_count == 1 else self

    def __call__(self, *inputs: Any) -> Any:
        """Run the function; return the output, or a tuple of several."""
        for x in inputs:
            if not isinstance(x, _Tensor):
                outputs = self.run_forward(inputs)
                return outputs[0] if len(outputs) == 1 else outputs
        return self.function(*inputs)

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return what the outputs are like: the function is run on tensors without values."""
        with FakeTensorMode(), torch.no_grad():
            inputs = [
                None if shape is None else torch.empty(shape, dtype=torch_dtype(dtype))
                for shape, dtype in zip(shapes, dtypes)
            ]
            outputs = self._run(inputs)
        return [tuple(y.shape) for y in outputs], [dtype_name(y.dtype) for y in outputs]

    def forward(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Run the function on NumPy arrays, or on tensors."""
        if any(isinstance(x, torch.Tensor) for x in inputs):
            return self._run(inputs)
        with torch.no_grad():
            return tuple(to_array(y) for y in self._run([None if x is None else to_tensor(x) for x in inputs]))

    def backward(self, grads: Sequence[Any], fwd_inputs: Sequence[Any], fwd_outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Let autograd compute the gradients.

        Tensors that come from the forward, and remember how, are differentiated; NumPy arrays do not, so the forward
        runs once more.
        """
        is_native = any(isinstance(x, torch.Tensor) for x in fwd_inputs)
        if is_native and any(isinstance(y, torch.Tensor) and y.requires_grad for y in fwd_outputs):
            return self._gradients(grads, fwd_inputs, fwd_outputs)
        with torch.enable_grad():
            inputs = [None if x is None else (x if is_native else to_tensor(x)).detach() for x in fwd_inputs]
            leaves = [x.requires_grad_() if x is not None and _is_float(x) else x for x in inputs]
            known = [g if g is None or is_native else to_tensor(g) for g in grads]
            found = self._gradients(known, leaves, self._run(leaves))
        return found if is_native else tuple(None if g is None else to_array(g) for g in found)

    def _run(self, inputs: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        try:
            result = self.function(*inputs)
        except _REFUSALS as error:
            raise OperatorError(f"{self.name}: {message_of(error)}") from error
        outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        wrong = next((y for y in outputs if not isinstance(y, torch.Tensor)), None)
        if wrong is not None or len(outputs) != self.output_count:
            received = f"{len(outputs)} outputs" if wrong is None else shown(wrong)
            raise OperatorError(
                f"{self.name} returned {received}; accepted are {self.output_count} tensors. Say how many there are by "
                f"outputs=[tensordesc(...), ...]."
            )
        return outputs

    def _gradients(self, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return what autograd says, ``None`` where an output does not depend on an input."""
        pairs = [(y, g) for y, g in zip(outputs, grads) if g is not None and y is not None and y.requires_grad]
        wanted = [index for index, x in enumerate(inputs) if x is not None and x.requires_grad]
        result: list[Any] = [None] * len(inputs)
        if not pairs or not wanted:
            return tuple(result)
        try:
            found = torch.autograd.grad(
                [y for y, _ in pairs],
                [inputs[index] for index in wanted],
                [g for _, g in pairs],
                retain_graph=True,  # the backward may be asked again, as benchmarks do
                allow_unused=True,
            )
        except _REFUSALS as error:
            raise OperatorError(f"{self.name}: {message_of(error)}") from error
        for index, gradient in zip(wanted, found):
            result[index] = gradient
        return tuple(result)


def _is_float(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = re.sub(r"\W", "_", getattr(function, "__name__", type(function).__name__), flags=re.ASCII).strip("_")
    return name if name.isidentifier() else f"function_{name}".rstrip("_")


def _checked(name: str, what: str, descriptors: Any) -> list[TensorDescriptor] | None:
    if descriptors is None:
        return None
    found = [descriptors] if isinstance(descriptors, TensorDescriptor) else list(descriptors)
    for descriptor in found:
        if not isinstance(descriptor, TensorDescriptor):
            raise InvalidInputError(
                f"{name}: {what} holds {shown(descriptor)}; accepted are descriptors, such as "
                f"tensordesc('float32', (2, 3))."
            )
    return found
