"""Sequences, which are Python lists of tensors while a graph is traced, and optionals, ``None`` where they are absent.

So the number of elements is part of the graph. A position that is computed from data when the graph runs can be read
from; inserting and erasing need it while tracing.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from deep500.core.errors import InvalidInputError, OperatorError
from deep500.frameworks.tensorflow._known import known_value, needed_value
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.translation import trace_subprogram
from deep500.networks.operator_node import OperatorNode

__all__ = [
    "concat_from_sequence",
    "optional",
    "optional_get_element",
    "optional_has_element",
    "sequence_at",
    "sequence_construct",
    "sequence_empty",
    "sequence_erase",
    "sequence_insert",
    "sequence_length",
    "sequence_map",
    "split_to_sequence",
]


@lowerings.register("SequenceEmpty", since=11)
def sequence_empty(node: OperatorNode) -> list[Any]:
    """Return a sequence without elements. Source: ONNX SequenceEmpty-11."""
    return []


@lowerings.register("SequenceConstruct", since=11)
def sequence_construct(node: OperatorNode, *tensors: tf.Tensor) -> list[Any]:
    """Return a sequence of the inputs. Source: ONNX SequenceConstruct-11."""
    return list(tensors)


@lowerings.register("SequenceAt", since=11)
def sequence_at(node: OperatorNode, sequence: list[Any], position: tf.Tensor) -> Any:
    """Return one element; negative positions count from the end. Source: ONNX SequenceAt-11."""
    value = known_value(position)
    if value is not None:
        return sequence[_place(node, int(value.ravel()[0]), len(sequence))]
    index = tf.cast(tf.reshape(position, []), tf.int32)
    index = tf.where(index < 0, index + len(sequence), index)
    check = tf.debugging.Assert((index >= 0) & (index < len(sequence)), [f"{node.label} has no such position", index])
    with tf.control_dependencies([check]):
        return tf.switch_case(
            tf.identity(index), [lambda element=element: tf.identity(element) for element in sequence]
        )


@lowerings.register("SequenceInsert", since=11)
def sequence_insert(
    node: OperatorNode, sequence: list[Any], value: tf.Tensor, position: tf.Tensor | None = None
) -> list[Any]:
    """Return the sequence with one element more, at the end by default. Source: ONNX SequenceInsert-11."""
    place = len(sequence)
    if position is not None:
        given = int(needed_value(node, position, "the position").ravel()[0])
        # One more place than there are elements; negative positions count the elements.
        place = place if given == place else _place(node, given, len(sequence))
    return [*sequence[:place], value, *sequence[place:]]


@lowerings.register("SequenceErase", since=11)
def sequence_erase(node: OperatorNode, sequence: list[Any], position: tf.Tensor | None = None) -> list[Any]:
    """Return the sequence with one element less, the last by default. Source: ONNX SequenceErase-11."""
    given = -1 if position is None else int(needed_value(node, position, "the position").ravel()[0])
    place = _place(node, given, len(sequence))
    return [*sequence[:place], *sequence[place + 1 :]]


@lowerings.register("SequenceLength", since=11)
def sequence_length(node: OperatorNode, sequence: list[Any]) -> tf.Tensor:
    """Return the number of elements, an int64 scalar. Source: ONNX SequenceLength-11."""
    return tf.constant(len(sequence), tf.int64)


@lowerings.register("ConcatFromSequence", since=11)
def concat_from_sequence(node: OperatorNode, sequence: list[Any]) -> tf.Tensor:
    """Return all elements in one tensor, along an axis that they have or along a new one.

    Source: ONNX ConcatFromSequence-11.
    """
    axis = int(node.attributes["axis"])
    if not sequence:
        raise InvalidInputError(f"{node.label} was given a sequence of no elements; accepted is one or more.")
    if node.attributes.get("new_axis", 0):
        sequence = [tf.expand_dims(element, axis) for element in sequence]
    return tf.concat(sequence, axis)


@lowerings.register("SplitToSequence", since=11)
def split_to_sequence(node: OperatorNode, x: tf.Tensor, split: tf.Tensor | None = None) -> list[Any]:
    """Return the parts of a tensor along an axis: of the sizes that are given, or of size 1.

    Source: ONNX SplitToSequence-24.
    """
    axis = int(node.attributes.get("axis", 0)) % x.shape.rank
    if split is not None and split.shape.rank:
        sizes = [int(size) for size in needed_value(node, split, "the sizes of the parts")]
        return list(tf.split(x, sizes, axis))
    part = 1 if split is None else int(needed_value(node, split, "the size of the parts"))
    size = x.shape[axis]
    if size is None:
        size = int(needed_value(node, tf.shape(x)[axis], "the size of what is split"))
    if part < 1:
        raise OperatorError(f"{node.label} was given parts of size {part}; accepted are sizes from 1 on.")
    sizes = [min(part, size - begin) for begin in range(0, size, part)]
    parts = tf.split(x, sizes, axis) if sizes else []
    keeps = split is not None or node.attributes.get("keepdims", 1)
    return [entry if keeps else tf.squeeze(entry, [axis]) for entry in parts]


@lowerings.register("SequenceMap", since=17)
def sequence_map(node: OperatorNode, sequence: list[Any], *values: Any) -> Any:
    """Return what a graph gives for every element: a sequence an output. Source: ONNX SequenceMap-17."""
    count = len(node.inputs) - 1
    others, captured = values[:count], dict(zip(node.captured, values[count:], strict=True))
    columns: tuple[list[Any], ...] = tuple([] for _ in node.outputs)
    for index, element in enumerate(sequence):
        row = [other[index] if isinstance(other, list) else other for other in others]
        results = trace_subprogram(node.graphs["body"], (element, *row), captured)
        for column, result in zip(columns, results, strict=False):
            column.append(result)
    return columns


@lowerings.register("Optional", since=15)
def optional(node: OperatorNode, value: Any = None) -> Any:
    """Return the value itself, or one that is absent. Source: ONNX Optional-15."""
    return value


@lowerings.register("OptionalHasElement", since=15)
def optional_has_element(node: OperatorNode, value: Any = None) -> tf.Tensor:
    """Return whether the value is there. Source: ONNX OptionalHasElement-28."""
    return tf.constant(value is not None)


@lowerings.register("OptionalGetElement", since=15)
def optional_get_element(node: OperatorNode, value: Any) -> Any:
    """Return the value, which must be there. Source: ONNX OptionalGetElement-28."""
    if value is None:
        raise InvalidInputError(f"{node.label} was given an optional without an element; accepted is one with it.")
    return value


def _place(node: OperatorNode, position: int, count: int) -> int:
    if not -count <= position < count:
        raise InvalidInputError(
            f"{node.label} was given position {position} in a sequence of {count}; accepted are those from {-count} "
            f"to {count - 1}."
        )
    return position % count
