"""Sequences, which are lists of arrays, and optionals, which are a value or ``None``; their gradients are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.operator_node import OperatorNode
from deep500.operators.operator import Operator

__all__: list[str] = []

Values = Sequence[Any]


class _Function(Operator):
    """An operator made of two functions."""

    def __init__(self, forward: Callable[..., Any], backward: Callable[..., Values] | None = None) -> None:
        """Set the functions.

        Args:
            forward: From the inputs to the output.
            backward: From the gradient by the output and the inputs to the gradients by the inputs.
        """
        self._forward, self._backward = forward, backward

    def forward(self, inputs: Values) -> tuple[Any, ...]:
        return (self._forward(*inputs),)

    def backward(self, grads: Values, fwd_inputs: Values, fwd_outputs: Values) -> tuple[Any, ...]:
        if self._backward is None or grads[0] is None:
            return (None,) * len(fwd_inputs)
        return (*self._backward(grads[0], *fwd_inputs), *[None] * len(fwd_inputs))[: len(fwd_inputs)]


def pass_on(node: OperatorNode) -> Operator:
    """Return an operator whose output is its input, of any kind."""
    return _Function(lambda value=None: value, lambda gradient, value=None: (gradient,))


lowerings.register("Optional", since=15)(pass_on)


@lowerings.register("OptionalGetElement", since=15)
def optional_get_element(node: OperatorNode) -> Operator:
    """Source: ONNX OptionalGetElement-28."""

    def forward(value: Any) -> Any:
        if value is None:
            raise OperatorError("OptionalGetElement: the optional is empty; accepted is one that holds a value.")
        return value

    return _Function(forward, lambda gradient, value: (gradient,))


@lowerings.register("OptionalHasElement", since=15)
def optional_has_element(node: OperatorNode) -> Operator:
    """Source: ONNX OptionalHasElement-28."""
    return _Function(lambda value=None: np.array(value is not None))


@lowerings.register("SequenceEmpty", since=11)
def sequence_empty(node: OperatorNode) -> Operator:
    """Source: ONNX SequenceEmpty-11."""
    return _Function(list)


@lowerings.register("SequenceConstruct", since=11)
def sequence_construct(node: OperatorNode) -> Operator:
    """Source: ONNX SequenceConstruct-11."""
    return _Function(lambda *tensors: list(tensors), lambda gradients, *tensors: gradients)


@lowerings.register("SequenceLength", since=11)
def sequence_length(node: OperatorNode) -> Operator:
    """Source: ONNX SequenceLength-11."""
    return _Function(lambda sequence: np.array(len(sequence), np.int64))


@lowerings.register("SequenceAt", since=11)
def sequence_at(node: OperatorNode) -> Operator:
    """Source: ONNX SequenceAt-11."""

    def backward(gradient: Any, sequence: list[Any], position: Any) -> Values:
        gradients: list[Any] = [None] * len(sequence)
        gradients[_place("SequenceAt", position, len(sequence))] = gradient
        return (gradients,)

    return _Function(lambda sequence, position: sequence[_place("SequenceAt", position, len(sequence))], backward)


@lowerings.register("SequenceInsert", since=11)
def sequence_insert(node: OperatorNode) -> Operator:
    """Source: ONNX SequenceInsert-11."""

    def place(sequence: list[Any], position: Any) -> int:
        # The end is a place as well.
        size = len(sequence)
        if position is None:
            return size
        found = int(np.asarray(position).reshape(-1)[0])
        return size if found == size else _place("SequenceInsert", position, size)

    def forward(sequence: list[Any], tensor: Any, position: Any = None) -> list[Any]:
        at = place(sequence, position)
        return [*sequence[:at], tensor, *sequence[at:]]

    def backward(gradients: list[Any], sequence: list[Any], tensor: Any, position: Any = None) -> Values:
        at = place(sequence, position)
        return [*gradients[:at], *gradients[at + 1 :]], gradients[at]

    return _Function(forward, backward)


@lowerings.register("SequenceErase", since=11)
def sequence_erase(node: OperatorNode) -> Operator:
    """Source: ONNX SequenceErase-11."""

    def forward(sequence: list[Any], position: Any = None) -> list[Any]:
        at = _place("SequenceErase", position, len(sequence))
        return [*sequence[:at], *sequence[at + 1 :]]

    def backward(gradients: list[Any], sequence: list[Any], position: Any = None) -> Values:
        at = _place("SequenceErase", position, len(sequence))
        return ([*gradients[:at], None, *gradients[at:]],)

    return _Function(forward, backward)


@lowerings.register("ConcatFromSequence", since=11)
def concat_from_sequence(node: OperatorNode) -> Operator:
    """Source: ONNX ConcatFromSequence-11."""
    axis, is_new = int(node.attributes["axis"]), bool(node.attributes.get("new_axis", 0))

    def forward(sequence: list[Any]) -> Any:
        if not sequence:
            raise OperatorError("ConcatFromSequence: the sequence is empty; accepted is at least one tensor.")
        return np.stack(sequence, axis=axis) if is_new else np.concatenate(sequence, axis=axis)

    def backward(gradient: Any, sequence: list[Any]) -> Values:
        if is_new:
            return (list(np.moveaxis(gradient, axis, 0)),)
        return (np.split(gradient, np.cumsum([x.shape[axis] for x in sequence])[:-1], axis=axis),)

    return _Function(forward, backward)


@lowerings.register("SplitToSequence", since=11)
def split_to_sequence(node: OperatorNode) -> Operator:
    """Source: ONNX SplitToSequence-24."""
    axis, keeps = int(node.attributes.get("axis", 0)), bool(node.attributes.get("keepdims", 1))

    def sizes(x: Any, split: Any) -> list[int]:
        size = x.shape[axis]
        if split is None:
            return [1] * size
        if np.ndim(split) == 0:
            part = int(split)
            return [min(part, size - begin) for begin in range(0, size, part)]
        return [int(part) for part in split]

    def forward(x: Any, split: Any = None) -> list[Any]:
        found = sizes(x, split)
        if sum(found) != x.shape[axis] or min(found, default=0) < 0:
            raise OperatorError(
                f"SplitToSequence: received the sizes {found} for an axis of {x.shape[axis]}; accepted are some that "
                f"add up to it."
            )
        parts = np.split(x, np.cumsum(found)[:-1], axis=axis) if found else []
        # The attribute is for parts of one entry, not where their sizes are given.
        return [part.squeeze(axis) for part in parts] if split is None and not keeps else list(parts)

    def backward(gradients: list[Any], x: Any, split: Any = None) -> Values:
        result, begin = np.zeros(x.shape, x.dtype), 0
        moved = np.moveaxis(result, axis, 0)  # a view
        for size, gradient in zip(sizes(x, split), gradients, strict=True):
            if gradient is not None:
                part = np.expand_dims(gradient, axis) if split is None and not keeps else gradient
                moved[begin : begin + size] = np.moveaxis(part, axis, 0)
            begin += size
        return (result,)

    return _Function(forward, backward)


def _place(operator: str, position: Any, size: int) -> int:
    """Return a position in a sequence counted from the front; the last one where none is given."""
    at = -1 if position is None else int(np.asarray(position).reshape(-1)[0])
    if not -size <= at < size:
        raise OperatorError(f"{operator}: the position is {at} in a sequence of {size}; accepted is from {-size} on.")
    return at % size
