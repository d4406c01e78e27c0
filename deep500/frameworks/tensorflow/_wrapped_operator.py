"""Functions of TensorFlow as custom operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import message_of, shown
from deep500.frameworks.tensorflow._errors import reason
from deep500.frameworks.tensorflow._native_operator import to_tensors
from deep500.operators.custom._checks import check_name
from deep500.operators.custom.custom_op import CustomOp

__all__ = ["TensorFlowOp"]


class TensorFlowOp(CustomOp):
    """A function of TensorFlow: NumPy arrays in and out, or TensorFlow's tensors in and out."""

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[TensorDescriptor] | None,
        outputs: Sequence[TensorDescriptor] | None,
        name: str | None,
    ) -> None:
        """Wrap a function; see ``custom_op_from_native``."""
        if not callable(function):
            raise OperatorError(
                f"custom_op_from_native was given {shown(function)}; accepted are functions of tensors."
            )
        self.function = function
        self.name = check_name(name or _identifier(function))
        self.input_count = None if inputs is None else len(inputs)
        self.output_count = 1 if outputs is None else len(outputs)
        self.input_descriptors = inputs
        self.output_descriptors = outputs
        #: The function itself where it returns a single tensor, so that nothing stands between it and its caller.
        self.run_native: Callable[..., Any] = function if self.output_count == 1 else self._run_several

    def forward(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Call the function.

        Raises:
            OperatorError: It fails, or returns another number of tensors.
        """
        tensors = to_tensors(self.name, inputs)
        outputs = self._call(tensors)
        return outputs if _are_native(inputs) else tuple(y.numpy() for y in outputs)

    def backward(self, grads: Sequence[Any], fwd_inputs: Sequence[Any], fwd_outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Call the function once more on a tape, and differentiate it.

        Raises:
            OperatorError: It fails.
        """
        tensors = to_tensors(self.name, fwd_inputs)
        sources = [x for x in tensors if x is not None and (x.dtype.is_floating or x.dtype.is_complex)]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            outputs = self._call(tensors)
        pairs = [(y, tf.cast(g, y.dtype)) for y, g in zip(outputs, to_tensors(self.name, grads)) if g is not None]
        try:
            found = tape.gradient([y for y, _ in pairs], sources, [g for _, g in pairs]) if pairs else []
        except (LookupError, TypeError, ValueError, tf.errors.OpError) as error:
            raise OperatorError(f"{self.name} cannot be differentiated: {reason(error)}") from error
        by_source = {id(x): g if g is None else tf.convert_to_tensor(g) for x, g in zip(sources, found)}
        gradients = tuple(by_source.get(id(x)) for x in tensors)
        return gradients if _are_native(fwd_inputs) else tuple(g if g is None else g.numpy() for g in gradients)

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return what TensorFlow infers when it traces the function."""
        specifications: list[Any] = []
        for shape, dtype in zip(shapes, dtypes):
            if shape is None:
                specifications.append(None)
            elif all(isinstance(size, int) for size in shape):
                specifications.append(tf.TensorSpec(shape, tf.as_dtype(dtype)))
            else:
                raise OperatorError(f"{self.name} infers from numbers only; it was given the shape {shape}.")
        outputs = tf.function(
            lambda: self._call([_placeholder(specification) for specification in specifications]), autograph=False
        ).get_concrete_function()
        return [tuple(y.shape) for y in outputs.outputs], [y.dtype.name for y in outputs.outputs]

    def _run_several(self, *inputs: Any) -> tuple[Any, ...]:
        return tuple(self.function(*inputs))

    def _call(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        try:
            result = self.function(*tensors)
        except tf.errors.OpError as error:
            raise OperatorError(f"{self.name} failed: {reason(error)}") from error
        except Exception as error:
            raise OperatorError(f"{self.name} failed: {type(error).__name__}: {message_of(error)}") from error
        outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(outputs) != self.output_count or any(y is None for y in outputs):
            raise OperatorError(
                f"{self.name} returned {len(outputs)} outputs; the operator has {self.output_count}. Say so by "
                f"outputs=, one descriptor for each."
            )
        return tuple(map(tf.convert_to_tensor, outputs))


def _placeholder(specification: tf.TensorSpec | None) -> Any:
    if specification is None:
        return None
    return tf.compat.v1.placeholder(specification.dtype, specification.shape)


def _are_native(values: Sequence[Any]) -> bool:
    """Whether any of them is TensorFlow's own."""
    return any(isinstance(x, (tf.Tensor, tf.Variable)) for x in values)


def _identifier(function: Callable[..., Any]) -> str:
    """Return a name that an operator may have, from a function's or a layer's."""
    name = getattr(function, "__name__", None) or type(function).__name__
    name = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    return name if name and not name[0].isdigit() else f"function_{name}".rstrip("_")
