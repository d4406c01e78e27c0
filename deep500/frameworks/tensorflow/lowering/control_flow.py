"""Branches and loops.

A branch whose condition is known while tracing is traced alone; else both are, for ``tf.cond``. A loop becomes
``tf.while_loop``; one that carries values that are no tensors (sequences, optionals), or whose body needs the number
of the round, is unrolled, which needs the number of its rounds while tracing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from deep500.core.errors import UnsupportedOperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.frameworks.tensorflow._known import (
    StaticShapesNeededError,
    constant_value,
    known_value,
    needed_value,
)
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._loops import Loop, padded_types, stacked_values
from deep500.frameworks.tensorflow.translation import trace_subprogram
from deep500.networks.operator_node import OperatorNode

__all__ = ["if_else", "loop", "scan"]

#: More rounds than this are not unrolled: the graph would take minutes to trace.
_MOST_ROUNDS = 4096


@lowerings.register("If", since=11)
def if_else(node: OperatorNode, condition: tf.Tensor, *captured: Any) -> tuple[Any, ...]:
    """Return the outputs of one of two branches. Source: ONNX If-25."""
    around = dict(zip(node.captured, captured, strict=True))
    known = constant_value(condition)
    chosen = None if known is not None else _both_branches(node, condition, around)
    if chosen is not None:
        return chosen
    value = needed_value(node, condition, "which branch runs; both give values of different kinds, and that")
    return trace_subprogram(node.graphs["then_branch" if bool(value.ravel()[0]) else "else_branch"], (), around)


class _BranchesDifferError(Exception):
    """The branches give other numbers of tensors, or tensors of other types."""


def _both_branches(node: OperatorNode, condition: tf.Tensor, captured: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the outputs of the branch that is chosen when the graph runs; ``None`` where their kinds differ."""
    kinds: list[tuple[Any, list[tf.DType]]] = []
    ranks: list[list[int | None]] = []

    def run(name: str) -> list[tf.Tensor]:
        results = trace_subprogram(node.graphs[name], (), captured)
        tensors = [tensor for tensor in tf.nest.flatten([results]) if tensor is not None]
        structure = tf.nest.map_structure(lambda value: value is not None, list(results))
        kinds.append((structure, [tensor.dtype for tensor in tensors]))
        ranks.append([tensor.shape.rank for tensor in tensors])
        if kinds[0] != kinds[-1]:
            raise _BranchesDifferError
        return [tf.identity(tensor) for tensor in tensors]

    try:
        tensors = tf.cond(tf.reshape(condition, []), lambda: run("then_branch"), lambda: run("else_branch"))
    except _BranchesDifferError:
        return None
    if ranks[0] != ranks[1] and known_value(condition) is not None:
        return None
    remaining = iter(tensors)
    return tuple(
        tf.nest.map_structure(lambda is_there: next(remaining) if is_there else None, entry) for entry in kinds[0][0]
    )


@lowerings.register("Loop", since=11)
def loop(
    node: OperatorNode, limit: tf.Tensor | None = None, condition: tf.Tensor | None = None, *values: Any
) -> tuple[Any, ...]:
    """Return the last values of what a body hands on, and what it gave in each round, stacked. Source: ONNX Loop-25."""
    count = max(len(node.inputs) - 2, 0)
    carried, captured = values[:count], dict(zip(node.captured, values[count:], strict=True))
    if any(not isinstance(value, tf.Tensor) for value in carried):
        return _unrolled(node, limit, condition, carried, captured)
    body = node.graphs["body"]

    def round_of(number: tf.Tensor, state: Sequence[tf.Tensor]) -> tuple[tf.Tensor, Sequence[Any], Sequence[Any]]:
        going, *results = trace_subprogram(body, (number, tf.constant(True), *state), captured)
        return going, results[:count], results[count:]

    types = padded_types(node, len(body.outputs) - 1)[count:]
    try:
        return Loop(node, round_of, types).run(carried, limit, condition)
    except (UnsupportedOperatorError, StaticShapesNeededError):
        if limit is None or known_value(limit) is None:
            raise
        return _unrolled(node, limit, condition, carried, captured)


def _unrolled(
    node: OperatorNode,
    limit: tf.Tensor | None,
    condition: tf.Tensor | None,
    carried: Sequence[Any],
    captured: dict[str, Any],
) -> tuple[Any, ...]:
    """Return what :func:`loop` does, by tracing the body for every round."""
    body, count = node.graphs["body"], len(carried)
    most = None if limit is None else int(needed_value(node, limit, "the number of rounds").ravel()[0])
    types = padded_types(node, len(body.outputs) - 1)[count:]
    columns: list[list[tf.Tensor]] = [[] for _ in types]
    going = condition is None or bool(needed_value(node, condition, "the condition of a loop").ravel()[0])
    number = 0
    while going and (most is None or number < most):
        if number >= _MOST_ROUNDS:
            raise UnsupportedOperatorError(
                f"{node.label} carries sequences through more than {_MOST_ROUNDS} rounds; for TensorFlow every round "
                f"is traced. Use tensors in place of sequences."
            )
        inputs = (tf.constant(number, tf.int64), tf.constant(True), *carried)
        proceed, *results = trace_subprogram(body, inputs, captured)
        carried = results[:count]
        for column, value in zip(columns, results[count:], strict=True):
            column.append(value)
        going, number = bool(needed_value(node, proceed, "the condition of a loop").ravel()[0]), number + 1
    return (*carried, *(stacked_values(column, kind) for column, kind in zip(columns, types, strict=True)))


@lowerings.register("Scan", since=9)
def scan(node: OperatorNode, *values: Any) -> tuple[Any, ...]:
    """Return the last states of a body that was run for every slice, and what it gave for each, stacked.

    Source: ONNX Scan-25.
    """
    body, inputs = node.graphs["body"], len(node.inputs)
    scanned = int(node.attributes["num_scan_inputs"])
    count = inputs - scanned
    states, captured = values[:count], dict(zip(node.captured, values[inputs:], strict=True))
    slices = [
        _leading(x, axis, bool(backwards))
        for x, axis, backwards in zip(
            values[count:inputs],
            _each(node, "input_axes", scanned),
            _each(node, "input_directions", scanned),
            strict=True,
        )
    ]
    rounds = next((x.shape[0] for x in slices if x.shape[0] is not None), None)
    rounds = tf.shape(slices[0])[0] if rounds is None else tf.constant(rounds)
    arrays = [tf.TensorArray(x.dtype, rounds, element_shape=x.shape[1:]).unstack(x) for x in slices]

    def round_of(number: tf.Tensor, state: Sequence[tf.Tensor]) -> tuple[tf.Tensor, Sequence[Any], Sequence[Any]]:
        row = [array.read(tf.cast(number, tf.int32)) for array in arrays]
        results = trace_subprogram(body, (*state, *row), captured)
        return tf.constant(True), results[:count], results[count:]

    outputs = len(body.outputs) - count
    output_axes = _each(node, "output_axes", outputs)
    types = padded_types(node, len(body.outputs))[count:]
    types = [_with_leading(kind, axis) for kind, axis in zip(types, output_axes, strict=True)]
    results = Loop(node, round_of, types).run(states, tf.cast(rounds, tf.int64), None)
    stacked = [
        _from_leading(y, axis, bool(backwards))
        for y, axis, backwards in zip(
            results[count:], output_axes, _each(node, "output_directions", outputs), strict=True
        )
    ]
    return (*results[:count], *stacked)


def _each(node: OperatorNode, what: str, count: int) -> list[int]:
    return list(node.attributes.get(f"scan_{what}") or [0] * count)


def _with_leading(kind: TensorDescriptor | None, axis: int) -> TensorDescriptor | None:
    """Return a type with an axis moved to the front."""
    if kind is None or kind.shape is None:
        return kind
    sizes = list(kind.shape)
    return TensorDescriptor(kind.dtype, [sizes.pop(axis), *sizes])


def _leading(x: tf.Tensor, axis: int, backwards: bool) -> tf.Tensor:
    """Return a tensor with an axis moved to the front, perhaps reversed."""
    axis %= x.shape.rank
    if axis:
        x = tf.transpose(x, [axis, *(other for other in range(x.shape.rank) if other != axis)])
    return tf.reverse(x, [0]) if backwards else x


def _from_leading(y: tf.Tensor, axis: int, backwards: bool) -> tf.Tensor:
    """Return a tensor with its first axis moved to a place, perhaps reversed."""
    if backwards:
        y = tf.reverse(y, [0])
    axis %= y.shape.rank
    return tf.transpose(y, [*range(1, axis + 1), 0, *range(axis + 1, y.shape.rank)]) if axis else y
