"""Loops over the entries of sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering._parameters import size, vector

__all__ = ["Step", "Tensors", "loop_over_time"]

#: Some tensors.
Tensors: TypeAlias = tuple[tf.Tensor, ...]

#: ``step(state, entries)`` returns the next state and the outputs.
Step: TypeAlias = Callable[[Tensors, Tensors], tuple[Tensors, Tensors]]

#: Up to so many steps stand in the graph one behind the other: a loop costs more than it saves.
_MOST_UNROLLED = 8


def loop_over_time(
    step: Step, sequences: Sequence[tf.Tensor], state: Sequence[tf.Tensor], outputs: Sequence[tf.TensorSpec]
) -> tuple[list[tf.Tensor], Tensors]:
    """Run a step for every entry of some sequences.

    Args:
        step: What is done with the state and one entry of each sequence.
        sequences: ``[T, ...]`` each; one at least.
        state: The first state; its shape does not change.
        outputs: What each output of a step is like.

    Returns:
        The outputs of all steps, ``[T, ...]`` each, and the last state.
    """
    length = size(sequences[0], 0)
    if isinstance(length, int) and length == 0:
        empty = [tf.zeros(vector([0, *_filled(spec, state)]), spec.dtype) for spec in outputs]
        return empty, tuple(state)
    if isinstance(length, int) and length <= _MOST_UNROLLED:
        return _unrolled(step, sequences, tuple(state))
    length = tf.cast(length, tf.int32)
    read = [tf.TensorArray(s.dtype, length, element_shape=s.shape[1:]).unstack(s) for s in sequences]
    write = [tf.TensorArray(spec.dtype, length, element_shape=spec.shape) for spec in outputs]

    def body(time: tf.Tensor, now: Any, written: Any) -> Any:
        following, results = step(tuple(now), tuple(array.read(time) for array in read))
        for old, new in zip(now, following, strict=True):
            new.set_shape(old.shape)
        return time + 1, following, tuple(a.write(time, y) for a, y in zip(written, results, strict=True))

    _, last, written = tf.while_loop(
        lambda time, now, written: time < length,
        body,
        (tf.constant(0), tuple(state), tuple(write)),
        maximum_iterations=length,
    )
    return [array.stack() for array in written], tuple(last)


def _unrolled(step: Step, sequences: Sequence[tf.Tensor], state: Tensors) -> tuple[list[tf.Tensor], Tensors]:
    collected = []
    for entries in zip(*(tf.unstack(sequence) for sequence in sequences), strict=True):
        state, results = step(state, entries)
        collected.append(results)
    return [tf.stack(results) for results in zip(*collected, strict=True)], state


def _filled(spec: tf.TensorSpec, state: Sequence[tf.Tensor]) -> list[Any]:
    """Return an output's shape; an unknown size is taken from the first state, whose batch comes first, too."""
    return [size(state[0], axis) if known is None else known for axis, known in enumerate(spec.shape)]
