"""What recurrent layers share: directions, lengths of sequences, layouts, first states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering._parameters import size, vector
from deep500.frameworks.tensorflow.lowering._tensors import is_empty, unfused
from deep500.frameworks.tensorflow.lowering._time_loop import Step, Tensors, loop_over_time
from deep500.networks.operator_node import OperatorNode

__all__ = ["Direction", "Layer", "read_layer"]


@dataclass(frozen=True)
class Direction:
    """One direction of a layer.

    Attributes:
        backward: Whether it reads the sequences from their ends.
        input_weight: ``[gates * H, I]``.
        state_weight: ``[H, gates * H]``.
        input_bias: What is added to the products with the inputs, ``[gates * H]``; the number 0 where there is none.
        state_bias: The same for the products with the hidden states; ``None`` where there is none.
        initial: The first states, ``[N, H]`` each.
    """

    backward: bool
    input_weight: tf.Tensor
    state_weight: tf.Tensor
    input_bias: Any
    state_bias: tf.Tensor | None
    initial: tuple[tf.Tensor, ...]


@dataclass(frozen=True)
class Layer:
    """A recurrent layer.

    Attributes:
        x: Sequences, ``[T, N, I]``.
        lengths: Length of each sequence, ``[N]``; ``None`` where all are as long as ``x``.
        hidden: Size of a state.
        directions: Its directions.
        batch_first: Whether the results have the batch as their first dimension.
        all_wanted: Whether the states of all steps are read, not only the last ones.
    """

    x: tf.Tensor
    lengths: tf.Tensor | None
    hidden: int
    directions: tuple[Direction, ...]
    batch_first: bool
    all_wanted: bool

    @property
    def count(self) -> int:
        """Number of directions."""
        return len(self.directions)

    def flipped(self, sequence: tf.Tensor, direction: Direction) -> tf.Tensor:
        """Return a sequence ``[T, N, ...]`` in the order in which a direction reads it, or back."""
        if not direction.backward:
            return sequence
        if self.lengths is None:
            return tf.reverse(sequence, [0])
        return tf.reverse_sequence(sequence, self.lengths, seq_axis=0, batch_axis=1)

    def run(self, steps: Sequence[Step], biases: Sequence[Any]) -> tuple[tf.Tensor, ...]:
        """Run all directions.

        Args:
            steps: What each does with its state and the product of an input with its weights, ``[N, gates * H]``. The
                hidden state comes first, and is the only output.
            biases: What is added to the products of each.

        Returns:
            The outputs of the operator.
        """
        results = []
        for direction, step, product, bias in zip(self.directions, steps, self._products(), biases, strict=True):
            entries = [self.flipped(product + bias, direction)]
            if self.lengths is not None:
                time = tf.range(size(self.x, 0), dtype=self.lengths.dtype)
                entries.append((time[:, None] < self.lengths[None])[..., None])
                step = _within_lengths(step)
            if not self.all_wanted:
                step = _without_outputs(step)
            outputs = [tf.TensorSpec([self.x.shape[1], self.hidden], self.x.dtype)] if self.all_wanted else []
            collected, last = loop_over_time(step, entries, direction.initial, outputs)
            results.append((self.flipped(collected[0], direction) if collected else None, *last))
        return self.finish(results)

    def finish(self, results: Sequence[tuple[tf.Tensor | None, ...]]) -> tuple[tf.Tensor, ...]:
        """Return the operator's outputs from the hidden states ``[T, N, H]`` and last states of each direction."""
        every, *states = zip(*results, strict=True)
        last = [tf.stack(state, 1 if self.batch_first else 0) for state in states]
        if not self.all_wanted:
            # Nobody reads it.
            return (last[0], *last)
        y = tf.stack(every, 1)
        return (tf.transpose(y, [2, 0, 1, 3]) if self.batch_first else y, *last)

    def _products(self) -> list[tf.Tensor]:
        """Return the products of all inputs with the weights of each direction, ``[T, N, gates * H]``."""
        weights = tf.concat([direction.input_weight for direction in self.directions], 0)
        width = self.directions[0].input_weight.shape[0]
        inputs = size(self.x, 2)
        shape = vector([size(self.x, 0), size(self.x, 1), self.count * width])
        flat = tf.linalg.matmul(tf.reshape(self.x, vector([-1, inputs])), weights, transpose_b=True)
        if is_empty(self.x):
            # Fused with a bias, TensorFlow's product of matrices without elements aborts the process.
            flat = unfused(flat)
        y = tf.reshape(flat, shape)
        y.set_shape([*self.x.shape[:2], self.count * width])
        return tf.split(y, self.count, 2) if self.count > 1 else [y]


def read_layer(
    node: OperatorNode,
    x: tf.Tensor,
    w: tf.Tensor,
    r: tf.Tensor,
    b: tf.Tensor | None,
    lengths: tf.Tensor | None,
    initial: Sequence[tf.Tensor | None],
) -> Layer:
    """Bring the inputs of a recurrent operator into one form.

    Raises:
        OperatorError: The direction is not known, the weights are not those of so many directions, or sizes that must
            be known are not.
    """
    direction = node.attributes.get("direction", "forward")
    backward = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if backward is None:
        raise OperatorError(f"{node.label} has direction {direction!r}; accepted are forward, reverse, bidirectional.")
    count, hidden, width = len(backward), r.shape[2] or node.attributes.get("hidden_size"), w.shape[1]
    if not hidden or not width or not w.shape[:1].is_compatible_with([count]):
        raise OperatorError(
            f"{node.label} was given W of shape {w.shape} and R of shape {r.shape}; accepted are known sizes, the "
            f"first of which is {count} for direction {direction!r}."
        )
    batch_first = bool(node.attributes.get("layout", 0))
    if batch_first:
        x = tf.transpose(x, [1, 0, 2])
        initial = [None if state is None else tf.transpose(state, [1, 0, 2]) for state in initial]
    zeros = tf.zeros(vector([size(x, 1), hidden]), x.dtype)
    zeros.set_shape([x.shape[1], hidden])
    directions = []
    for index, reads_backward in enumerate(backward):
        input_bias, state_bias = (0, None) if b is None else tf.split(b[index], 2)
        states = tuple(zeros if state is None else state[index] for state in initial)
        for state in states:
            state.set_shape([x.shape[1], hidden])
        directions.append(Direction(reads_backward, w[index], tf.transpose(r[index]), input_bias, state_bias, states))
    wanted = bool(node.outputs and node.outputs[0])
    return Layer(x, lengths, hidden, tuple(directions), batch_first, wanted)


def _within_lengths(step: Step) -> Step:
    """Return a step that, behind the end of a sequence, keeps the states and has zeros as its output."""

    def bounded(state: Tensors, entries: Tensors) -> tuple[Tensors, Tensors]:
        following, outputs = step(state, entries[:1])
        alive = entries[1]
        return (
            tuple(tf.where(alive, new, old) for new, old in zip(following, state, strict=True)),
            tuple(tf.where(alive, output, tf.zeros_like(output)) for output in outputs),
        )

    return bounded


def _without_outputs(step: Step) -> Step:
    return lambda state, entries: (step(state, entries)[0], ())
