"""Running an operator as everybody does, and noticing what no operator may do.

An operator leaves its tensors as they are, returns a tuple of arrays, and for every input a gradient of the input's
shape and dtype, or ``None``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from deep500.core.errors import Deep500Error, OperatorError
from deep500.core.texts import shown
from deep500.operators.custom.custom_op import CustomOp
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = [
    "REFUSALS",
    "ContractViolation",
    "as_inputs",
    "call_forward",
    "first_difference",
    "first_not_finite",
    "is_differentiable",
    "is_float",
    "is_whole",
    "name_of",
    "run_backward",
    "run_forward",
]

#: What an operator, or a function in it, raises for tensors that it does not take.
REFUSALS = (
    Deep500Error,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


class ContractViolation(OperatorError):  # noqa: N818 - the operator violates; that an exception says so is its base's
    """An operator did what no operator may do."""


def name_of(op: Operator) -> str:
    """Return what messages call an operator."""
    return op.name if isinstance(op, CustomOp) else type(op).__name__


def is_differentiable(op: Operator) -> bool:
    """Whether an operator says that it has a backward; those of the library all have one."""
    return bool(getattr(op, "differentiable", True))


def is_float(x: OptionalArray) -> bool:
    """Whether an input is there and holds real floats, those of ``ml_dtypes`` included."""
    return x is not None and x.dtype.name.startswith(("float", "bfloat"))


def is_whole(dtype: np.dtype[Any]) -> bool:
    """Whether values of a dtype are whole numbers or truth values."""
    return dtype.kind in "biu" or dtype.name.startswith(("int", "uint"))


def as_inputs(op: Any, inputs: Any) -> list[OptionalArray]:
    """Return the inputs as a list of arrays.

    Args:
        op: The operator.
        inputs: A list, one array an input, ``None`` where one is absent.

    Raises:
        OperatorError: It is no operator, or the inputs are no list.
    """
    if not isinstance(op, Operator):
        hint = " Create it first, with its attributes." if isinstance(op, type) else ""
        raise OperatorError(
            f"An operator was expected, not {shown(op)}; accepted are CustomPythonOp, CppOp, those of "
            f"deep500.operators.library, and what custom_op_from_native makes of a function.{hint}"
        )
    if not isinstance(inputs, (list, tuple)):
        raise OperatorError(
            f"{name_of(op)}: the inputs were given as {shown(inputs)}; accepted is a list with one array an input."
        )
    return [None if x is None else np.asarray(x) for x in inputs]


def call_forward(op: Operator, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
    """Run the forward, without a look at what it does to its inputs.

    Raises:
        ContractViolation: It does not return a tuple of arrays.
        OperatorError: The operator refuses the inputs.
    """
    outputs = op.run_forward(inputs) if isinstance(op, CustomOp) else op.forward(inputs)
    if not isinstance(outputs, (tuple, list)) or any(not hasattr(y, "__array__") for y in outputs):
        raise ContractViolation(
            f"{name_of(op)}.forward returned {shown(outputs)}; accepted is a tuple of arrays, one an output."
        )
    return tuple(np.asarray(y) for y in outputs)


def run_forward(op: Operator, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
    """Run the forward and check that it left its inputs as they were; they are put right where it did not.

    Raises:
        ContractViolation: It modifies an input, or does not return a tuple of arrays.
        OperatorError: The operator refuses the inputs.
    """
    with _unmodified(f"{name_of(op)}.forward", {"input": inputs}):
        return call_forward(op, inputs)


def run_backward(
    op: Operator,
    grads: Sequence[OptionalArray],
    inputs: Sequence[OptionalArray],
    outputs: Sequence[OptionalArray],
) -> tuple[OptionalArray, ...]:
    """Run the backward and check what it returns, and that it left its tensors as they were.

    Raises:
        ContractViolation: The number of gradients, a shape or a dtype is wrong, there is a gradient by integers, or a
            tensor was modified.
        OperatorError: The operator refuses the tensors.
    """
    name = f"{name_of(op)}.backward"
    with _unmodified(name, {"gradient by output": grads, "input": inputs, "output": outputs}):
        if isinstance(op, CustomOp):
            gradients = op.run_backward(grads, inputs, outputs)
        else:
            gradients = op.backward(grads, inputs, outputs)
    if not isinstance(gradients, (tuple, list)):
        raise ContractViolation(f"{name} returned {shown(gradients)}; accepted is a tuple, one gradient an input.")
    if len(gradients) != len(inputs):
        raise ContractViolation(
            f"{name} returned {len(gradients)} gradients for {len(inputs)} inputs; accepted is one for every input, "
            f"None where there is none."
        )
    return tuple(_checked_gradient(name, i, x, g) for i, (x, g) in enumerate(zip(inputs, gradients)))


def first_difference(first: Array, second: Array) -> tuple[int, ...] | None:
    """Return the index of the first element in which arrays of one shape differ; NaN equals NaN."""
    if first.tobytes() == second.tobytes():
        return None
    return _first((first != second) & ~((first != first) & (second != second)))


def first_not_finite(array: Array) -> tuple[int, ...] | None:
    """Return the index of the first NaN or infinity, ``None`` where there is none."""
    return None if is_whole(array.dtype) else _first(~np.isfinite(array))


def _checked_gradient(name: str, index: int, x: OptionalArray, gradient: Any) -> OptionalArray:
    if gradient is None:
        return None
    found = np.asarray(gradient)
    if x is None or not is_float(x):
        of = "is absent" if x is None else f"is of {x.dtype.name}"
        raise ContractViolation(
            f"{name} returned a gradient of {found.dtype.name} by input {index}, which {of}; accepted is None."
        )
    if (found.shape, found.dtype) != (x.shape, x.dtype):
        raise ContractViolation(
            f"{name} returned a gradient of {found.dtype.name} and shape {found.shape} by input {index}; accepted is "
            f"the input's: {x.dtype.name} and {x.shape}."
        )
    return found


@contextmanager
def _unmodified(name: str, tensors: Mapping[str, Sequence[OptionalArray]]) -> Iterator[None]:
    given = [(f"{kind} {i}", x) for kind, listed in tensors.items() for i, x in enumerate(listed) if x is not None]
    before = [x.copy() for _, x in given]
    yield
    for (what, x), old in zip(given, before):
        place = first_difference(x, old)
        if place is not None:
            text = f"it was {old[place]} at {list(place)} and is {x[place]}"
            if x.flags.writeable:
                x[...] = old
            raise ContractViolation(f"{name} modified its {what}: {text}. Work on a copy of it.")


def _first(chosen: Any) -> tuple[int, ...] | None:
    places = np.flatnonzero(chosen)
    if not places.size:
        return None
    return tuple(int(i) for i in np.unravel_index(places[0], np.shape(chosen)))
