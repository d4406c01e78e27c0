"""Operators that are written in Python, in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record  # no public name says whether there is a tape

from deep500.core.errors import OperatorError
from deep500.core.texts import one_line
from deep500.frameworks.tensorflow._errors import traced_errors
from deep500.frameworks.tensorflow._native_operator import infer_types, refuse_xla, to_tensors
from deep500.operators.custom import CustomOp

__all__ = ["python_operation"]

#: A function of arrays, ``None`` where one is absent.
ArrayFunction = Callable[[Sequence[Any]], Sequence[Any]]


def python_operation(op: CustomOp) -> Callable[..., Any]:
    """Return an operator that is written in Python as a function of tensors.

    Eagerly, it is called directly. In a graph it becomes a ``tf.numpy_function``: such a graph runs only in the process
    that traced it, and a saved model does not hold the operator.
    """
    forwards: dict[tuple[bool, ...], Callable[..., Any]] = {}

    def call(*inputs: Any) -> Any:
        with traced_errors():
            refuse_xla(op.name)
            op.check_input_count(len(inputs))
            tensors = to_tensors(op.name, inputs)
            if not _may_be_recorded():
                outputs: Sequence[tf.Tensor] = _forward(op, tensors)
            else:
                present = tuple(x is not None for x in tensors)
                if present not in forwards:  # decorating takes longer than TensorFlow's own operators
                    forwards[present] = _differentiable(op, present)
                outputs = forwards[present](*[x for x in tensors if x is not None])
        return outputs[0] if op.output_count == 1 else tuple(outputs)

    converted: Callable[..., Any] = tf.autograph.experimental.do_not_convert(call)
    converted.__name__ = converted.__qualname__ = op.name
    return converted


def _may_be_recorded() -> bool:
    """Whether what runs now may be differentiated later; what TensorFlow does for that takes longer than all else."""
    return not tf.executing_eagerly() or bool(record.could_possibly_record())


def _differentiable(op: CustomOp, present: Sequence[bool]) -> Callable[..., Sequence[tf.Tensor]]:
    """Return the forward of the inputs that are present, with the backward as its gradient."""

    def forward(*given: tf.Tensor) -> Any:
        inputs = _spread(given, present)
        outputs = _forward(op, inputs)

        def backward(*grads: Any) -> Any:
            return _backward(op, grads, inputs, outputs)

        return tuple(outputs), backward

    function: Callable[..., Sequence[tf.Tensor]] = tf.custom_gradient(forward)
    return function


def _forward(op: CustomOp, inputs: Sequence[Any]) -> list[tf.Tensor]:
    if tf.executing_eagerly():
        return _run(op, "forward", op.run_forward, inputs)
    types = infer_types(op, inputs)
    shapes = [
        inputs[0].shape if not op.infers else tf.TensorShape([s if isinstance(s, int) else None for s in shape])
        for shape in types.shapes
    ]

    def checked(arrays: Sequence[Any]) -> Sequence[Any]:
        outputs = op.run_forward(arrays)
        for index, (y, shape, dtype) in enumerate(zip(outputs, shapes, types.dtypes)):
            if not shape.is_compatible_with(y.shape) or y.dtype.name != dtype:
                raise OperatorError(
                    f"forward returned {y.dtype.name} of shape {tuple(y.shape)} as output {index}; the graph was "
                    f"traced for {dtype} of shape {shape}. Give the operator an infer(shapes, dtypes) that says so."
                )
        return outputs

    return _run(op, "forward", checked, inputs, types.dtypes, shapes)


def _backward(op: CustomOp, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Run the backward, which itself cannot be differentiated; return one gradient for every given input."""
    known = [tf.convert_to_tensor(g) if g is not None and _has_gradient(y) else None for g, y in zip(grads, outputs)]
    models = [x for x in inputs if x is not None and _has_gradient(x)]
    if not op.differentiable:
        return _placed(inputs, _refuse(op, known, models, "be differentiated: it has no backward"))
    # The inputs are given also where the operator does not read them: gradients are checked against them.
    operands = [*known, *inputs, *(outputs if op.gradient_needs[1] else [None] * len(outputs))]
    if not tf.executing_eagerly():  # the derivative of this one can only reach tensors of this one's graph
        operands = [x if x is None else tf.identity(x) for x in operands]

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        split, end = len(outputs), len(outputs) + len(inputs)
        gradients = op.run_backward(arrays[:split], arrays[split:end], arrays[end:])
        return [g for g, x in zip(gradients, inputs) if x is not None and _has_gradient(x)]

    def backward(*given: tf.Tensor) -> Any:
        everything = _spread(given, [x is not None for x in operands])
        dtypes, shapes = [x.dtype.name for x in models], [x.shape for x in models]
        gradients = _run(op, "backward", run, everything, dtypes, shapes, models)

        def second(*grads: Any) -> Any:
            return _placed(given, _refuse(op, grads, list(filter(_has_gradient, given)), "be differentiated twice"))

        return tuple(gradients), second

    given = [x for x in operands if x is not None]
    if not models:
        return _placed(inputs, [])
    return _placed(inputs, tf.custom_gradient(backward)(*given) if _may_be_recorded() else backward(*given)[0])


def _refuse(op: CustomOp, grads: Sequence[Any], models: Sequence[tf.Tensor], how: str) -> list[tf.Tensor]:
    """Return the gradient where there is none: an error, unless the gradients that come in are zero, as it is then."""

    def refuse(arrays: Sequence[Any]) -> Sequence[Any]:
        if any(np.any(array) for array in arrays if array is not None):
            raise OperatorError(f"it cannot {how}.")
        return [None] * len(models)

    dtypes, shapes = [x.dtype.name for x in models], [x.shape for x in models]
    # Whether one of them is not zero is known when the graph runs; TensorFlow also asks for gradients that nobody uses.
    return _run(op, "backward", refuse, grads, dtypes, shapes, models) if models else []


def _run(
    op: CustomOp,
    which: str,
    function: ArrayFunction,
    inputs: Sequence[Any],
    dtypes: Sequence[str] = (),
    shapes: Sequence[tf.TensorShape] = (),
    models: Sequence[tf.Tensor] = (),
) -> list[tf.Tensor]:
    """Run a function of arrays on tensors, or add it to the graph that is being traced.

    Args:
        op: The operator, for messages.
        which: What the function is of it.
        function: Takes an array (or ``None``) an input.
        inputs: Tensors, ``None`` where one is absent.
        dtypes: Dtypes of what the function returns, for a graph.
        shapes: Shapes of that, for a graph.
        models: Of gradients, what they are the gradients by: ``None`` stands for zeros like these.
    """
    present = [x is not None for x in inputs]

    def call(*given: Any) -> Any:
        try:
            results = function(_spread([_read_only(x) for x in given], present))
        except Exception as error:
            raise OperatorError(f"Deep500 operator {op.name!r} failed in its {which}: {_told(error)}") from error
        return [*results]

    given = [x for x in inputs if x is not None]
    if tf.executing_eagerly():
        return [_tensor(y) if y is not None else tf.zeros_like(x) for y, x in zip_longest(call(*given), models)]
    sizes = [tf.shape(x) for x in models]

    def call_in_graph(*arrays: Any) -> Any:
        results = call(*arrays[len(sizes) :])
        types = [tf.as_dtype(dtype).as_numpy_dtype for dtype in dtypes]
        return [np.zeros(arrays[i], types[i]) if y is None else y for i, y in enumerate(results)]

    outputs = tf.numpy_function(call_in_graph, [*sizes, *given], [tf.as_dtype(d) for d in dtypes], stateful=False)
    for y, shape in zip(outputs, shapes):
        y.set_shape(shape)
    return list(outputs)


def _tensor(array: Any) -> tf.Tensor:
    try:
        return tf.convert_to_tensor(array)
    except (TypeError, ValueError) as error:
        raise OperatorError(f"TensorFlow has no tensors of {array.dtype.name}: {error}") from error


def _told(error: Exception) -> str:
    kind = "" if isinstance(error, OperatorError) else f"{type(error).__name__}: "
    return one_line(f"{kind}{error}")


def _read_only(value: Any) -> Any:
    """Return an array that shares its memory with a tensor, or with one of TensorFlow's arrays."""
    array = np.asarray(value).view()
    array.flags.writeable = False
    return array


def _spread(given: Sequence[Any], present: Sequence[bool]) -> list[Any]:
    """Return what is given, with ``None`` where something is absent."""
    rest = iter(given)
    return [next(rest) if is_present else None for is_present in present]


def _placed(inputs: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
    """Return one gradient for every input that is given, ``None`` for integers."""
    rest = iter(gradients)
    return [next(rest) if _has_gradient(x) else None for x in inputs if x is not None]


def _has_gradient(tensor: tf.Tensor) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)
