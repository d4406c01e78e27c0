"""Loops as ``tf.while_loop``, with what each round gives stacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.frameworks.tensorflow._dtypes import held_dtype
from deep500.frameworks.tensorflow._known import constant_value
from deep500.networks.operator_node import OperatorNode

__all__ = ["Loop", "padded_types", "stacked_values"]

#: ``round(number, state)`` returns whether to go on, the next state, and what is to be stacked.
Round: TypeAlias = Callable[
    [tf.Tensor, Sequence[tf.Tensor]], tuple[tf.Tensor, Sequence[tf.Tensor], Sequence[tf.Tensor]]
]


def padded_types(node: OperatorNode, count: int) -> list[TensorDescriptor | None]:
    """Return the types of so many outputs of a node, of which the last ones may not be wanted."""
    return [*node.output_types, *[None] * (count - len(node.output_types))]


def stacked_values(values: Sequence[tf.Tensor], kind: TensorDescriptor | None) -> tf.Tensor:
    """Return tensors as one along a new first axis; of none, an empty tensor of the type that is known."""
    if values:
        return tf.concat([tf.expand_dims(value, 0) for value in values], 0)
    shape = None if kind is None or kind.shape is None else kind.shape[1:]
    return _no_rounds(tf.TensorShape(_known_sizes(shape)), tf.float32 if kind is None else held_dtype(kind.dtype))


class Loop:
    """A loop over a state of tensors."""

    def __init__(self, node: OperatorNode, round_of: Round, stacked_types: Sequence[TensorDescriptor | None]) -> None:
        """Prepare a loop.

        Args:
            node: The node that it is for.
            round_of: Adds the operations of one round to the graph.
            stacked_types: What the network knows of the tensors that are stacked.
        """
        self._node = node
        self._round = round_of
        self._dtypes = [tf.float32 if kind is None else held_dtype(kind.dtype) for kind in stacked_types]
        self._element_shapes = [
            tf.TensorShape(None if kind is None or kind.shape is None else _known_sizes(kind.shape[1:]))
            for kind in stacked_types
        ]
        self._state_shapes: list[tf.TensorShape] = []

    def run(
        self, state: Sequence[tf.Tensor], limit: tf.Tensor | None, condition: tf.Tensor | None
    ) -> tuple[tf.Tensor, ...]:
        """Add the loop to the graph.

        Args:
            state: What goes into the first round.
            limit: The greatest number of rounds.
            condition: Whether there is a first round.

        Returns:
            The last state, and what the rounds gave, each stacked along a new first axis.
        """
        most = None if limit is None else tf.cast(tf.reshape(limit, []), tf.int64)
        begins = tf.constant(True) if condition is None else tf.reshape(condition, [])
        invariants = [value.shape for value in state]
        while True:
            dtypes = list(self._dtypes)
            try:
                number, final, arrays = self._traced(state, invariants, most, begins)
                break
            except (TypeError, ValueError):
                # A round may give other shapes than it takes, and other types than the network knows of.
                relaxed = [_common(a, b) for a, b in zip(invariants, self._state_shapes, strict=False)]
                same = [str(shape) for shape in relaxed] == [str(shape) for shape in invariants]
                if (not self._state_shapes and state) or (same and dtypes == self._dtypes):
                    raise
                invariants = relaxed or invariants
        has_rounds = _is_true(begins) and most is not None and bool((constant_value(most) or 0) > 0)
        stacked = [
            _stacked(array, number, shape, dtype, has_rounds)
            for array, shape, dtype in zip(arrays, self._element_shapes, self._dtypes, strict=True)
        ]
        return (*final, *stacked)

    def _traced(
        self,
        state: Sequence[tf.Tensor],
        invariants: Sequence[tf.TensorShape],
        most: tf.Tensor | None,
        begins: tf.Tensor,
    ) -> Any:
        arrays = [tf.TensorArray(dtype, 0, dynamic_size=True, infer_shape=False) for dtype in self._dtypes]

        def goes_on(number: tf.Tensor, going: tf.Tensor, *unused: Any) -> tf.Tensor:
            return going if most is None else tf.logical_and(going, number < most)

        def body(number: tf.Tensor, going: tf.Tensor, values: Any, written: Any) -> Any:
            proceed, following, given = self._round(number, values)
            self._state_shapes = [value.shape for value in following]
            self._dtypes = [value.dtype for value in given]
            self._element_shapes = [
                _more_specific(a, b.shape) for a, b in zip(self._element_shapes, given, strict=True)
            ]
            row = tf.cast(number, tf.int32)
            written = tuple(array.write(row, value) for array, value in zip(written, given, strict=True))
            return number + 1, tf.reshape(proceed, []), tuple(following), written

        loop_vars = (tf.constant(0, tf.int64), begins, tuple(state), tuple(arrays))
        shapes = (tf.TensorShape([]), tf.TensorShape([]), tuple(invariants), tuple(tf.TensorShape([]) for _ in arrays))
        number, _, final, written = tf.while_loop(goes_on, body, loop_vars, shape_invariants=shapes)
        return number, final, written


def _stacked(
    array: tf.TensorArray, rounds: tf.Tensor, shape: tf.TensorShape, dtype: tf.DType, has_rounds: bool
) -> tf.Tensor:
    sizes = -1 if shape.rank is None else [-1 if size is None else size for size in shape]

    def stack() -> tf.Tensor:
        return tf.raw_ops.TensorListStack(
            input_handle=array.flow, element_shape=tf.constant(sizes, tf.int32), element_dtype=dtype
        )

    # TensorFlow cannot stack no tensors of unknown sizes.
    y = (
        stack()
        if has_rounds or shape.is_fully_defined()
        else tf.cond(rounds > 0, stack, lambda: _no_rounds(shape, dtype))
    )
    y.set_shape(tf.TensorShape([None]).concatenate(shape))
    return y


def _no_rounds(shape: tf.TensorShape, dtype: tf.DType) -> tf.Tensor:
    sizes = [] if shape.rank is None else [0 if size is None else size for size in shape]
    return tf.fill([0, *sizes], tf.constant(dtype.as_numpy_dtype() if dtype != tf.string else "", dtype))


def _known_sizes(shape: Sequence[Any] | None) -> list[int | None] | None:
    return None if shape is None else [size if isinstance(size, int) else None for size in shape]


def _common(a: tf.TensorShape, b: tf.TensorShape) -> tf.TensorShape:
    """Return the shape of tensors that may have either of two."""
    if a.rank is None or b.rank is None or a.rank != b.rank:
        return tf.TensorShape(None)
    return tf.TensorShape([x if x == y else None for x, y in zip(a, b, strict=True)])


def _more_specific(declared: tf.TensorShape, traced: tf.TensorShape) -> tf.TensorShape:
    return declared.merge_with(traced) if declared.is_compatible_with(traced) else traced


def _is_true(condition: tf.Tensor) -> bool:
    value = constant_value(condition)
    return value is not None and bool(value)
