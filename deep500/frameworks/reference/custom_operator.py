"""Custom operators as functions of NumPy arrays, and functions of NumPy as custom operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deep500.core.errors import Deep500Error, OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import message_of, shown
from deep500.operators.custom._checks import check_name
from deep500.operators.custom.custom_op import CustomOp
from deep500.operators.custom.native_op import NativeOp
from deep500.operators.operator import OptionalArray

__all__ = ["custom_op", "custom_op_from_native"]

#: ``backward(grads, fwd_inputs, fwd_outputs)``, as that of an operator.
Backward = Callable[[Sequence[OptionalArray], Sequence[OptionalArray], Sequence[OptionalArray]], Any]


def custom_op(op: CustomOp) -> Callable[..., Any]:
    """Return a custom operator as a function of NumPy arrays.

    It takes one array an input (``None`` for optional ones that are absent) and returns an array, or a tuple where the
    operator has several outputs.

    Args:
        op: The operator.

    Raises:
        CompileError: The operator cannot be compiled.
        OperatorError: It is no custom operator. The function that is returned raises it for inputs that the operator
            refuses.
    """
    if isinstance(op, NativeOp):
        return op.numpy_forward  # nothing of ours stands between it and its caller
    if isinstance(op, _NumpyOp):
        return op.run_native
    if isinstance(op, CustomOp):
        return op.__call__
    raise OperatorError(
        f"custom_op was given {shown(op)}; accepted are CustomPythonOp, CppOp, what compile_custom_cppop returns and "
        f"what custom_op_from_native returns, as objects, not as classes."
    )


def custom_op_from_native(
    function: Callable[..., Any],
    inputs: Sequence[TensorDescriptor] | None = None,
    outputs: Sequence[TensorDescriptor] | None = None,
    *,
    backward: Backward | None = None,
    name: str | None = None,
) -> CustomOp:
    """Return a function of NumPy as a custom operator, to validate it and to measure it.

    Args:
        function: Takes one array an input, and returns an array or several, such as ``np.matmul``.
        inputs: Dtype and shape of the inputs, where they are fixed.
        outputs: The same of the outputs; needed where there are several.
        backward: From the gradients by the outputs, the inputs and the outputs, each a list, to the gradient by the
            input, or one by each of several. NumPy has none; without it the operator cannot be differentiated.
        name: Name of the operator; by default the function's.

    Raises:
        OperatorError: ``function`` or ``backward`` cannot be called.

    Example:
        >>> square = custom_op_from_native(np.square, backward=lambda grads, inputs, outputs: 2 * grads[0] * inputs[0])
        >>> square(np.array([1.0, 3.0]))
        array([1., 9.])
        >>> square.run_backward([np.ones(2)], [np.array([1.0, 3.0])], [np.array([1.0, 9.0])])
        (array([2., 6.]),)
    """
    return _NumpyOp(function, inputs, outputs, backward, name)


class _NumpyOp(CustomOp):
    """A function of NumPy."""

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[TensorDescriptor] | None,
        outputs: Sequence[TensorDescriptor] | None,
        backward: Backward | None,
        name: str | None,
    ) -> None:
        for given in (function, backward):
            if (given is not None and not callable(given)) or function is None:
                raise OperatorError(
                    f"custom_op_from_native was given {shown(given)}; accepted are functions of arrays."
                )
        self.name = check_name(name or _identifier(function))
        self.input_count = None if inputs is None else len(inputs)
        self.output_count = 1 if outputs is None else len(outputs)
        self.differentiable = backward is not None
        self.input_descriptors = inputs
        self.output_descriptors = outputs
        self._function = function
        self._backward = backward

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        """Call the function.

        Raises:
            OperatorError: It fails, or returns another number of arrays.
        """
        return self._checked(self._called(self._function, *inputs))

    def _checked(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(outputs) != self.output_count or any(y is None for y in outputs):
            raise OperatorError(
                f"{self.name} returned {len(outputs)} outputs; the operator has {self.output_count}. Say so by "
                f"outputs=, one descriptor for each."
            )
        return outputs

    def run_native(self, *inputs: Any) -> Any:
        """Call the function on arrays; a single array that it returns goes to the caller as it is.

        Small functions would notice lists and tuples in between, and checks that cannot fail for such a result.

        Raises:
            OperatorError: The function fails, or returns another number of arrays.
        """
        for x in inputs:
            if type(x) is not np.ndarray:
                return self(*inputs)
        self.check_input_count(len(inputs))
        try:
            result = self._function(*inputs)
        except Deep500Error:
            raise
        except Exception as error:
            raise self._explained(error) from error
        if self.output_count == 1 and type(result) is np.ndarray:
            return result
        outputs = self._checked(_listed(result))
        return outputs[0] if len(outputs) == 1 else outputs

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[Any, ...]:
        """Call the backward.

        Raises:
            OperatorError: There is none, it fails, or returns another number of gradients.
        """
        self.check_differentiable()
        assert self._backward is not None
        gradients = self._called(self._backward, grads, fwd_inputs, fwd_outputs)
        if len(gradients) != len(fwd_inputs):
            raise OperatorError(
                f"The backward of {self.name} returned {len(gradients)} gradients for {len(fwd_inputs)} inputs; "
                f"accepted is one for every input, None where there is none."
            )
        return gradients

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return what the descriptors of the outputs say; without them, the outputs are like the first input."""
        described = self.output_descriptors
        if described is None or not all(descriptor.is_static for descriptor in described):
            return super().infer(shapes, dtypes)
        return [descriptor.shape for descriptor in described], [descriptor.dtype for descriptor in described]

    def _called(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
        try:
            result = function(*arguments)
        except Deep500Error:
            raise
        except Exception as error:
            raise self._explained(error) from error
        return _listed(result)

    def _explained(self, error: Exception) -> OperatorError:
        return OperatorError(f"{self.name} failed: {type(error).__name__}: {message_of(error)}")


def _listed(result: Any) -> tuple[Any, ...]:
    results = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return tuple(None if y is None else np.asarray(y) for y in results)


def _identifier(function: Callable[..., Any]) -> str:
    """Return a name that an operator may have."""
    name = getattr(function, "__name__", None) or type(function).__name__
    name = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    return name if name and not name[0].isdigit() else f"function_{name}".rstrip("_")
