"""Sequences, which are Python lists of tensors, and optionals, which are ``None`` where they are absent."""

from __future__ import annotations

from typing import Any

import torch

from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@recorded
def _listed(*tensors: Any) -> list[Any]:
    return list(tensors)


@recorded
def _at(sequence: list[Any], position: torch.Tensor) -> Any:
    return sequence[int(position)]


@recorded
def _inserted(sequence: list[Any], value: Any, position: torch.Tensor | None = None) -> list[Any]:
    place = len(sequence) if position is None else int(position)
    place += len(sequence) if place < 0 else 0
    return [*sequence[:place], value, *sequence[place:]]


@recorded
def _erased(sequence: list[Any], position: torch.Tensor | None = None) -> list[Any]:
    place = (len(sequence) - 1 if position is None else int(position)) % len(sequence)
    return [*sequence[:place], *sequence[place + 1 :]]


@recorded
def _length(sequence: list[Any]) -> torch.Tensor:
    return torch.tensor(len(sequence))


@recorded
def _concatenated(sequence: list[torch.Tensor], axis: int, is_new: bool) -> torch.Tensor:
    return torch.stack(sequence, axis) if is_new else torch.cat(sequence, axis)


@recorded
def _split(x: torch.Tensor, sizes: torch.Tensor | None, axis: int, keeps: bool) -> list[torch.Tensor]:
    if sizes is None:
        parts = torch.split(x, 1, axis)
        return [part if keeps else part.squeeze(axis) for part in parts]
    return list(torch.split(x, int(sizes) if sizes.dim() == 0 else sizes.tolist(), axis))


@recorded
def _has_element(value: Any) -> torch.Tensor:
    return torch.tensor(value is not None)


@recorded
def _same(value: Any) -> Any:
    return value


@lowerings.register("SequenceEmpty", since=11)
def sequence_empty(node: OperatorNode) -> Any:
    """A sequence without elements."""
    return []


@lowerings.register("SequenceConstruct", since=11)
def sequence_construct(node: OperatorNode, *tensors: Any) -> Any:
    """A sequence of the inputs."""
    return _listed(*tensors)


@lowerings.register("SequenceAt", since=11)
def sequence_at(node: OperatorNode, sequence: Any, position: torch.Tensor) -> Any:
    """One element; negative positions count from the end."""
    return _at(sequence, position)


@lowerings.register("SequenceInsert", since=11)
def sequence_insert(node: OperatorNode, sequence: Any, value: Any, position: Any = None) -> Any:
    """The sequence with one element more, at the end by default."""
    return _inserted(sequence, value, position)


@lowerings.register("SequenceErase", since=11)
def sequence_erase(node: OperatorNode, sequence: Any, position: Any = None) -> Any:
    """The sequence with one element less, the last by default."""
    return _erased(sequence, position)


@lowerings.register("SequenceLength", since=11)
def sequence_length(node: OperatorNode, sequence: Any) -> Any:
    """The number of elements."""
    return _length(sequence)


@lowerings.register("ConcatFromSequence", since=11)
def concat_from_sequence(node: OperatorNode, sequence: Any) -> Any:
    """All elements in one tensor, along an axis that they have, or along a new one."""
    return _concatenated(sequence, int(node.attributes["axis"]), bool(node.attributes.get("new_axis", 0)))


@lowerings.register("SplitToSequence", since=11)
def split_to_sequence(node: OperatorNode, x: torch.Tensor, sizes: Any = None) -> Any:
    """Parts of a tensor along an axis."""
    axis, keeps = int(node.attributes.get("axis", 0)), bool(node.attributes.get("keepdims", 1))
    return _split(x, sizes, axis, keeps)


@lowerings.register("Optional", since=15)
def optional(node: OperatorNode, value: Any = None) -> Any:
    """The value itself, or one that is absent."""
    return None if value is None else _same(value)


@lowerings.register("OptionalHasElement", since=15)
def optional_has_element(node: OperatorNode, value: Any = None) -> Any:
    """Whether the value is there."""
    return _has_element(value)


@lowerings.register("OptionalGetElement", since=15)
def optional_get_element(node: OperatorNode, value: Any) -> Any:
    """The value, which must be there."""
    return _same(value)
