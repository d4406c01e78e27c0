"""What is known of the entries of a vector of sizes that the graph computes.

Exported networks take shapes apart and put them together again: Shape, Gather, Concat, ReduceProd. Followed entry by
entry, most of what comes out is known, and only the size of the batch is not; TensorFlow's own inference loses all.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

__all__ = ["remaining_size", "traced_entries"]


@dataclass(frozen=True)
class _Product:
    """A number times sizes that are not known: each a dimension of a tensor of the graph."""

    factor: int
    sizes: tuple[tuple[str, int], ...] = ()

    def __mul__(self, other: _Product) -> _Product:
        return _Product(self.factor * other.factor, tuple(sorted((*self.sizes, *other.sizes))))

    def __floordiv__(self, other: _Product) -> int | None:
        """Return the quotient where it is a number, ``None`` elsewhere."""
        exact = self.sizes == other.sizes and other.factor and self.factor % other.factor == 0
        return self.factor // other.factor if exact else None


#: The entries of a vector, in order; ``None`` for one of which nothing is known while tracing.
_Entries = list[_Product | None]

#: Vectors of sizes are short.
_MOST_ENTRIES = 64


def traced_entries(x: tf.Tensor) -> list[int | None] | None:
    """Return the entries of a tensor of integers, ``None`` for each that is not known while tracing.

    Args:
        x: The tensor, in the graph that is being traced.

    Returns:
        As many entries as it has, in the order in which they lie; ``None`` where not even their number is known.
    """
    entries = _entries(x, {})
    return None if entries is None else [_number(entry) for entry in entries]


def remaining_size(x: tf.Tensor, shape: tf.Tensor, keeps: bool) -> int | None:
    """Return the size that stands for -1 in the shape that a tensor is to have, where it is known while tracing.

    Args:
        x: The tensor.
        shape: The shape.
        keeps: Whether 0 stands for the size that x has there.
    """
    own = _of_tensor(x)
    entries = _entries(shape, {})
    if own is None or entries is None:
        return None
    others = _Product(1)
    for axis, entry in enumerate(entries):
        if entry is None:
            return None
        if entry == _Product(-1):
            continue
        is_kept = keeps and entry == _Product(0) and axis < len(own)
        others *= own[axis] if is_kept else entry
    return functools.reduce(operator.mul, own, _Product(1)) // others


def _entries(x: tf.Tensor, found: dict[str, _Entries | None]) -> _Entries | None:
    count = x.shape.num_elements()
    if count is None or count > _MOST_ENTRIES or not x.dtype.is_integer:
        return None
    if x.name not in found:
        value = tf.get_static_value(x)
        rule = _RULES.get(x.op.type)
        if value is not None:
            found[x.name] = [_Product(int(entry)) for entry in np.ravel(value)]
        else:
            result = rule(x.op, lambda source: _entries(source, found)) if rule else None
            found[x.name] = result if result is not None and len(result) == count else [None] * count
    return found[x.name]


def _number(entry: _Product | None) -> int | None:
    return None if entry is None or entry.sizes else entry.factor


_Follow = Callable[[tf.Tensor], _Entries | None]


def _of_tensor(x: tf.Tensor) -> list[_Product] | None:
    """Return the sizes of a tensor."""
    if x.shape.rank is None:
        return None
    sizes = enumerate(x.shape.as_list())
    return [_Product(1, ((x.name, axis),)) if size is None else _Product(size) for axis, size in sizes]


def _of_shape(operation: tf.Operation, follow: _Follow) -> _Entries | None:
    sizes = _of_tensor(operation.inputs[0])
    return None if sizes is None else list(sizes)


def _same(operation: tf.Operation, follow: _Follow) -> _Entries | None:
    """The entries are those of the first input: dimensions of size 1 come and go."""
    return follow(operation.inputs[0])


def _behind_each_other(operation: tf.Operation, follow: _Follow) -> _Entries | None:
    sources = list(operation.inputs)
    if operation.type == "ConcatV2":
        sources.pop()
    if any(source.shape.rank != (1 if operation.type == "ConcatV2" else 0) for source in sources):
        return None
    parts = [follow(source) for source in sources]
    return None if any(part is None for part in parts) else [entry for part in parts for entry in part or ()]


def _picked(operation: tf.Operation, follow: _Follow) -> _Entries | None:
    source, indices = operation.inputs[0], tf.get_static_value(operation.inputs[1])
    entries = follow(source) if source.shape.rank == 1 else None
    if entries is None or indices is None or any(not -len(entries) <= i < len(entries) for i in np.ravel(indices)):
        return None
    return [entries[int(index)] for index in np.ravel(indices)]


def _cut(operation: tf.Operation, follow: _Follow) -> _Entries | None:
    source = operation.inputs[0]
    bounds = [tf.get_static_value(bound) for bound in operation.inputs[1:]]
    entries = follow(source) if source.shape.rank == 1 else None
    if entries is None or any(bound is None or np.size(bound) != 1 for bound in bounds):
        return None
    if operation.get_attr("new_axis_mask") or operation.get_attr("ellipsis_mask"):
        return None
    begin, end, step = (int(np.ravel(bound)[0]) for bound in bounds)
    if operation.get_attr("shrink_axis_mask"):
        return [entries[begin]] if -len(entries) <= begin < len(entries) else None
    first = None if operation.get_attr("begin_mask") else begin
    return entries[first : None if operation.get_attr("end_mask") else end : step]


def _product(operation: tf.Operation, follow: _Follow) -> _Entries | None:
    source, axes = operation.inputs[0], tf.get_static_value(operation.inputs[1])
    entries = follow(source)
    if entries is None or axes is None or source.shape.rank != 1 or np.size(axes) != 1:
        return None
    result: _Product | None = _Product(1)
    for entry in entries:
        result = _times(result, entry)
    return [result]


def _times(a: _Product | None, b: _Product | None) -> _Product | None:
    return None if a is None or b is None else a * b


def _of_numbers(function: Callable[[int, int], int]) -> Callable[[_Product | None, _Product | None], _Product | None]:
    """Return a function of two entries that are numbers."""

    def apply(a: _Product | None, b: _Product | None) -> _Product | None:
        p, q = _number(a), _number(b)
        return None if p is None or q is None else _Product(function(p, q))

    return apply


def _combined(function: Callable[[_Product | None, _Product | None], _Product | None]) -> Any:
    def rule(operation: tf.Operation, follow: _Follow) -> _Entries | None:
        sides: Sequence[_Entries | None] = [follow(source) for source in operation.inputs]
        if any(side is None for side in sides):
            return None
        a, b = (side or [] for side in sides)
        count = max(len(a), len(b))
        if {len(a), len(b)} - {1, count}:
            return None
        pairs = zip(a * (count // max(len(a), 1)), b * (count // max(len(b), 1)), strict=True)
        return [function(p, q) for p, q in pairs]

    return rule


_RULES: dict[str, Callable[[tf.Operation, _Follow], _Entries | None]] = {
    "Shape": _of_shape,
    **dict.fromkeys(("Cast", "ExpandDims", "Identity", "Reshape", "Squeeze"), _same),
    **dict.fromkeys(("ConcatV2", "Pack"), _behind_each_other),
    "GatherV2": _picked,
    "StridedSlice": _cut,
    "Prod": _product,
    "AddV2": _combined(_of_numbers(operator.add)),
    "Maximum": _combined(_of_numbers(max)),
    "Minimum": _combined(_of_numbers(min)),
    "Mul": _combined(_times),
    "Sub": _combined(_of_numbers(operator.sub)),
}
