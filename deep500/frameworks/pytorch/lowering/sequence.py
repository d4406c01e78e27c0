"""Sequences, which are Python lists of tensors, and optionals, which are ``None`` where they are absent."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from deep500.core.errors import InvalidInputError
from deep500.frameworks.pytorch._recording import call_each_run, recorded, recorded_view, spread
from deep500.frameworks.pytorch._sizes import as_integers, integers_of
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._graphs import GraphHolder, HeldGraph
from deep500.frameworks.pytorch.lowering._plain import device_of
from deep500.frameworks.pytorch.lowering._texts import texts_on_host
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@recorded_view
def _listed(*tensors: Any) -> list[Any]:
    return list(tensors)


def _place(position: torch.Tensor | None, count: int, last: int) -> int:
    """Return a place in a sequence of so many elements counted from its start, by default the last one accepted.

    Raises:
        InvalidInputError: There is no such place.
    """
    place = last if position is None else int(position)
    if not -count <= place <= last:
        raise InvalidInputError(
            f"Position {place} was given in a sequence of {count} elements; accepted is {-count} to {last}."
        )
    return place + count if place < 0 else place


@recorded_view
def _at(sequence: list[Any], position: torch.Tensor) -> Any:
    return sequence[_place(position, len(sequence), len(sequence) - 1)]


@recorded_view
def _inserted(sequence: list[Any], value: Any, position: torch.Tensor | None = None) -> list[Any]:
    place = _place(position, len(sequence), len(sequence))
    return [*sequence[:place], value, *sequence[place:]]


@recorded_view
def _erased(sequence: list[Any], position: torch.Tensor | None = None) -> list[Any]:
    place = _place(position, len(sequence), len(sequence) - 1)
    return [*sequence[:place], *sequence[place + 1 :]]


@recorded
def _length(sequence: list[Any]) -> torch.Tensor:
    return torch.tensor(len(sequence), device=device_of(sequence))


@recorded
def _concatenated(sequence: list[Any], axis: int, is_new: bool) -> Any:
    if sequence and isinstance(sequence[0], np.ndarray):  # texts
        return np.stack(sequence, axis) if is_new else np.concatenate(sequence, axis)
    return torch.stack(list(sequence), axis) if is_new else torch.cat(list(sequence), axis)


@recorded_view
def _split(x: torch.Tensor, sizes: Any, axis: int, keeps: bool) -> list[torch.Tensor]:
    if sizes is None:
        return list(torch.split(x, 1, axis)) if keeps else list(torch.unbind(x, axis))
    if isinstance(sizes, int):
        return list(torch.split(x, sizes, axis))
    if isinstance(sizes, torch.Tensor) and not sizes.dim():
        return list(torch.split(x, int(sizes), axis))
    return list(torch.split(x, as_integers(sizes), axis))


@recorded
def _has_element(value: Any) -> torch.Tensor:
    return torch.tensor(value is not None, device=device_of(value))


@recorded_view
def _present(value: Any) -> Any:
    if value is None:
        raise InvalidInputError(
            "An optional value is absent, and its element was asked for; ask first whether it has one."
        )
    return value


class _SequenceMap(GraphHolder):
    """Runs a body for every element of a sequence."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__(node)
        self.body = HeldGraph(node.graphs["body"])
        self.input_count = len(node.inputs)

    def forward(self, *values: Any) -> tuple[Any, ...]:
        inputs, captured = values[: self.input_count], self._captured(values[self.input_count :])
        columns: list[list[Any]] = [[] for _ in self.body.output_types]
        for index in range(len(inputs[0])):
            # Sequences go element by element; a tensor goes into every call.
            row = [value[index] if isinstance(value, (list, tuple)) else value for value in inputs]
            for column, result in zip(columns, self.body(row, captured), strict=True):
                column.append(result)
        return tuple(columns)


@lowerings.register("SequenceEmpty", since=11)
def sequence_empty(node: OperatorNode) -> Any:
    """A sequence without elements. Source: ONNX SequenceEmpty-11."""
    return []


@lowerings.register("SequenceConstruct", since=11)
def sequence_construct(node: OperatorNode, *tensors: Any) -> Any:
    """A sequence of the inputs. Source: ONNX SequenceConstruct-11."""
    return _listed(*tensors)


@lowerings.register("SequenceAt", since=11)
def sequence_at(node: OperatorNode, sequence: Any, position: torch.Tensor) -> Any:
    """One element; negative positions count from the end. Source: ONNX SequenceAt-11."""
    return _at(sequence, position)


@lowerings.register("SequenceInsert", since=11)
def sequence_insert(node: OperatorNode, sequence: Any, value: Any, position: Any = None) -> Any:
    """The sequence with one element more, at the end by default. Source: ONNX SequenceInsert-11."""
    return _inserted(sequence, value, position)


@lowerings.register("SequenceErase", since=11)
def sequence_erase(node: OperatorNode, sequence: Any, position: Any = None) -> Any:
    """The sequence with one element less, the last by default. Source: ONNX SequenceErase-11."""
    return _erased(sequence, position)


@lowerings.register("SequenceLength", since=11)
def sequence_length(node: OperatorNode, sequence: Any) -> Any:
    """The number of elements. Source: ONNX SequenceLength-11."""
    return _length(sequence)


@lowerings.register("ConcatFromSequence", since=11)
def concat_from_sequence(node: OperatorNode, sequence: Any) -> Any:
    """All elements in one tensor, along an axis or a new one. Source: ONNX ConcatFromSequence-11."""
    return _concatenated(sequence, int(node.attributes["axis"]), bool(node.attributes.get("new_axis", 0)))


@lowerings.register("SplitToSequence", since=11)
@texts_on_host
def split_to_sequence(node: OperatorNode, x: torch.Tensor, sizes: Any = None) -> Any:
    """Parts of a tensor along an axis. Source: ONNX SplitToSequence-24."""
    axis, keeps = int(node.attributes.get("axis", 0)), bool(node.attributes.get("keepdims", 1))
    constant = node.constants.get(1)
    given = int(constant) if constant is not None and constant.ndim == 0 else integers_of(node, 1, sizes)
    return _split(x, given, axis, keeps)


@lowerings.register("SequenceMap", since=17)
def sequence_map(node: OperatorNode, *values: Any) -> Any:
    """What a graph gives for every element of a sequence. Source: ONNX SequenceMap-17."""
    return spread(call_each_run(_SequenceMap(node), values), len(node.outputs))


@lowerings.register("Optional", since=15)
def optional(node: OperatorNode, value: Any = None) -> Any:
    """The value itself, or one that is absent. Source: ONNX Optional-28."""
    return value


@lowerings.register("OptionalHasElement", since=15)
def optional_has_element(node: OperatorNode, value: Any = None) -> Any:
    """Whether the value is there. Source: ONNX OptionalHasElement-28."""
    return _has_element(value)


@lowerings.register("OptionalGetElement", since=15)
def optional_get_element(node: OperatorNode, value: Any) -> Any:
    """The value, which must be there. Source: ONNX OptionalGetElement-28."""
    return _present(value)
