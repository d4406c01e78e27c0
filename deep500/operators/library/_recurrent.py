"""The frame of recurrent operators: directions, sequence lengths, layouts, and the way back through time."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._recurrent_activations import Activation, read_activations
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Gradients", "RecurrentOperator", "States", "Weights"]

#: The hidden state ``[N, H]``, and for LSTM the cell state.
States = tuple[Array, ...]

_DIRECTIONS = ("forward", "reverse", "bidirectional")


@dataclass(frozen=True)
class Weights:
    """What one direction multiplies with, in the dtype to compute in; G gates, H hidden and I input elements.

    Attributes:
        inputs: W ``[G * H, I]``.
        hidden: R ``[G * H, H]``.
        input_bias: The first half of B ``[G * H]``.
        hidden_bias: The second half of B ``[G * H]``.
        peepholes: P ``[3 * H]``; ``None`` for operators without.
        activations: The direction's activation functions.
    """

    inputs: Array
    hidden: Array
    input_bias: Array
    hidden_bias: Array
    peepholes: OptionalArray
    activations: tuple[Activation, ...]


@dataclass
class Gradients:
    """What a direction's steps add up on the way back: the gradients by the weights of the same names."""

    hidden: Array
    hidden_bias: Array
    peepholes: OptionalArray


class _Read(NamedTuple):
    """The inputs, checked, in the layout and the dtype to compute in."""

    x: Array  # [T, N, I]
    weights: list[Weights]  # one a direction
    lengths: Array  # [N]
    initial: list[States]  # one a direction


class _Trace(NamedTuple):
    """What one direction computed: inputs in its own order of time, every step's memory and states, the outputs."""

    x: Array
    saved: list[Any]
    before: list[States]
    hidden: Array  # [T, N, H]
    last: States


class RecurrentOperator(Operator):
    """An operator that goes through sequences step by step, forward, backward, or both ways."""

    #: Number of gates, in W, R and B.
    gates: int
    #: Names of the inputs after sequence_lens that hold initial states.
    state_names: tuple[str, ...] = ("initial_h",)
    #: Whether there is an input P for peepholes.
    has_peepholes = False
    #: What ``activations`` is where it is left out, for one direction.
    default_activations: tuple[str, ...]

    def __init__(
        self,
        *,
        hidden_size: int | None = None,
        direction: str = "forward",
        layout: int = 0,
        clip: float | None = None,
        activations: Sequence[str] | None = None,
        activation_alpha: Sequence[float] | None = None,
        activation_beta: Sequence[float] | None = None,
    ) -> None:
        """Set the attributes.

        Args:
            hidden_size: H; by default it is read from R.
            direction: ``"forward"``, ``"reverse"`` or ``"bidirectional"``.
            layout: 0 when time is the first axis of X and Y, 1 when the batch is.
            clip: What goes into activations is limited to ``[-clip, clip]``; by default it is not.
            activations: Names of the functions, those of the second direction after those of the first.
            activation_alpha: Their first parameters, for those that have one.
            activation_beta: Their second parameters.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        name = type(self).__name__
        self.hidden_size = (
            None if hidden_size is None else attributes.integer(name, "hidden_size", hidden_size, minimum=1)
        )
        self.direction = attributes.choice(name, "direction", direction, _DIRECTIONS)
        self.layout = attributes.flag(name, "layout", layout)
        limit = None if clip is None else attributes.real(name, "clip", clip)
        count = 2 if self.direction == "bidirectional" else 1
        names = list(activations) if activations else list(self.default_activations) * count
        each = len(self.default_activations)
        if len(names) != each * count:
            raise OperatorError(
                f"{name}: the attribute activations is {names} with direction {self.direction!r}; accepted are "
                f"{each * count} functions."
            )
        found = read_activations(name, names, activation_alpha, activation_beta, limit)
        self.activations = [found[i * each : (i + 1) * each] for i in range(count)]

    @abc.abstractmethod
    def step(self, x: Array, state: States, weights: Weights) -> tuple[States, Any]:
        """Return the next states, and what :meth:`step_backward` needs.

        Args:
            x: The gates' share of the input with its bias, ``[N, G * H]``.
            state: The states before.
            weights: Those of the direction.
        """

    @abc.abstractmethod
    def step_backward(
        self, by_next: States, saved: Any, state: States, weights: Weights, total: Gradients
    ) -> tuple[Array, States]:
        """Return the gradients by :meth:`step`'s ``x`` and ``state``; add those by the weights to ``total``.

        Args:
            by_next: The gradients by the next states.
            saved: What :meth:`step` returned.
            state: The states before.
            weights: Those of the direction.
            total: Sums over the steps.
        """

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y ``[T, directions, N, H]`` and the last states ``[directions, N, H]``.

        Raises:
            OperatorError: Shapes or dtypes of the inputs do not fit to one another or to the attributes.
        """
        read = self._read(inputs)
        traces = [self._run(read, i) for i in range(len(read.weights))]
        hidden = [self._in_time(trace.hidden, read.lengths, i) for i, trace in enumerate(traces)]
        y = np.stack(hidden, axis=1)
        last = [np.stack(states) for states in zip(*(trace.last for trace in traces), strict=True)]
        if self.layout:
            y, last = y.transpose(2, 0, 1, 3), [state.swapaxes(0, 1) for state in last]
        dtype = np.asarray(inputs[0]).dtype
        return tuple(np.ascontiguousarray(t).astype(dtype, copy=False) for t in (y, *last))

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by all inputs but sequence_lens, back through time."""
        if all(gradient is None for gradient in grads):
            return (None,) * len(fwd_inputs)
        read = self._read(fwd_inputs)
        wide, (steps, batch, _), hidden = read.x.dtype, read.x.shape, read.weights[0].hidden.shape[1]
        directions = len(read.weights)
        given = [None if g is None else np.asarray(g).astype(wide, copy=False) for g in grads]
        given += [None] * (1 + len(self.state_names) - len(given))
        by_y, by_last = given[0], given[1 : 1 + len(self.state_names)]
        if self.layout:
            by_y = None if by_y is None else by_y.transpose(1, 2, 0, 3)
            by_last = [None if g is None else g.swapaxes(0, 1) for g in by_last]
        by_y = np.zeros((steps, directions, batch, hidden), wide) if by_y is None else by_y
        zero = np.zeros((directions, batch, hidden), wide)
        ends = [zero if g is None else g for g in by_last]
        parts = [
            self._run_backward(read, i, self._in_time(by_y[:, i], read.lengths, i), tuple(g[i] for g in ends))
            for i in range(directions)
        ]
        by_x = np.sum([self._in_time(part[0], read.lengths, i) for i, part in enumerate(parts)], axis=0)
        stacked = [np.stack(group) for group in zip(*(part[1] for part in parts), strict=True)]
        by_weights, by_states = stacked[:3], stacked[3 : 3 + len(self.state_names)]
        if self.layout:
            by_x, by_states = by_x.swapaxes(0, 1), [g.swapaxes(0, 1) for g in by_states]
        rest = stacked[3 + len(self.state_names) :]
        return returned([by_x, *by_weights, None, *by_states, *rest], fwd_inputs)

    def _run(self, read: _Read, direction: int) -> _Trace:
        """Go through the sequences in one direction."""
        weights, state = read.weights[direction], read.initial[direction]
        x = self._in_time(read.x, read.lengths, direction)
        projected = x @ weights.inputs.T + weights.input_bias
        hidden = np.zeros((*x.shape[:2], weights.hidden.shape[1]), x.dtype)
        saved, before = [], []
        for t in range(len(x)):
            runs = (t < read.lengths)[:, None]
            following, memory = self.step(projected[t], state, weights)
            saved.append(memory)
            before.append(state)
            hidden[t] = np.where(runs, following[0], 0)
            state = tuple(np.where(runs, new, old) for new, old in zip(following, state, strict=True))
        return _Trace(x, saved, before, hidden, state)

    def _run_backward(
        self, read: _Read, direction: int, by_hidden: Array, by_states: States
    ) -> tuple[Array, list[Array]]:
        """Go back through one direction.

        Returns:
            The gradient by its inputs, in its own order of time, and those by W, R, B, the initial states and P.
        """
        trace, weights = self._run(read, direction), read.weights[direction]
        peepholes = None if weights.peepholes is None else np.zeros_like(weights.peepholes)
        total = Gradients(np.zeros_like(weights.hidden), np.zeros_like(weights.hidden_bias), peepholes)
        by_projected = np.zeros((*trace.x.shape[:2], len(weights.inputs)), trace.x.dtype)
        for t in reversed(range(len(trace.x))):
            runs = (t < read.lengths)[:, None]
            by_next = (np.where(runs, by_states[0] + by_hidden[t], 0), *(np.where(runs, g, 0) for g in by_states[1:]))
            by_projected[t], by_before = self.step_backward(by_next, trace.saved[t], trace.before[t], weights, total)
            by_states = tuple(np.where(runs, 0, g) + new for g, new in zip(by_states, by_before, strict=True))
        rows = by_projected.shape[0] * by_projected.shape[1]
        flat = by_projected.reshape(rows, by_projected.shape[2])
        by_inputs = flat.T @ trace.x.reshape(rows, trace.x.shape[2])
        by_bias = np.concatenate([flat.sum(axis=0), total.hidden_bias])
        found = [by_inputs, total.hidden, by_bias, *by_states]
        return by_projected @ weights.inputs, found if total.peepholes is None else [*found, total.peepholes]

    def _in_time(self, x: Array, lengths: Array, direction: int) -> Array:
        """Return ``[T, N, ...]`` in the order of time of a direction, and back from it: each sequence by itself."""
        if self.direction == "forward" or (self.direction == "bidirectional" and direction == 0):
            return x
        time = np.arange(len(x))[:, None]
        order = np.where(time < lengths, lengths - 1 - time, time)
        return np.take_along_axis(x, order[:, :, None], axis=0)

    def _read(self, inputs: Sequence[OptionalArray]) -> _Read:
        """Check the inputs."""
        name = type(self).__name__
        names = ["X", "W", "R", "B", "sequence_lens", *self.state_names, *(["P"] if self.has_peepholes else [])]
        given = dict(zip(names, take_inputs(name, inputs, names[:3], names[3:]), strict=True))
        floats = [n for n in names if n != "sequence_lens"]
        check_dtypes(name, floats, [given[n] for n in floats], "floats")
        x, w, r = (present(given[n]) for n in names[:3])
        if x.ndim != 3 or w.ndim != 3 or r.ndim != 3:
            raise OperatorError(
                f"{name}: received X of shape {x.shape}, W of {w.shape} and R of {r.shape}; accepted is rank 3."
            )
        steps, batch, size = (x.shape[1], x.shape[0], x.shape[2]) if self.layout else x.shape
        count, hidden = len(self.activations), self.hidden_size or r.shape[2]
        rows = self.gates * hidden
        states = (batch, count, hidden) if self.layout else (count, batch, hidden)
        expected: dict[str, tuple[int, ...]] = {
            "W": (count, rows, size),
            "R": (count, rows, hidden),
            "B": (count, 2 * rows),
            "sequence_lens": (batch,),
            "P": (count, 3 * hidden),
            **dict.fromkeys(self.state_names, states),
        }
        for key, tensor in given.items():
            if tensor is not None and key != "X" and tensor.shape != expected[key]:
                raise OperatorError(
                    f"{name}: received {key} of shape {tensor.shape}; accepted is {expected[key]} for X of shape "
                    f"{x.shape}, {hidden} hidden elements and direction {self.direction!r}."
                )
        lengths = given["sequence_lens"]
        if lengths is None:
            lengths = np.full(batch, steps, np.int64)
        elif lengths.dtype.kind not in "iu" or (batch and not 0 <= lengths.min() <= lengths.max() <= steps):
            raise OperatorError(
                f"{name}: received sequence_lens {lengths.tolist()} of {lengths.dtype}; accepted are int32 from 0 to "
                f"{steps}, the number of steps."
            )
        return self._assembled(given, expected, lengths.astype(np.int64))

    def _assembled(
        self, given: dict[str, OptionalArray], expected: dict[str, tuple[int, ...]], lengths: Array
    ) -> _Read:
        """Return checked inputs in the layout to compute in; absent ones are zeros."""
        x = present(given["X"])
        wide = compute_dtype(x.dtype)

        def whole(key: str) -> Array:
            tensor = given[key]
            return np.zeros(expected[key], wide) if tensor is None else tensor.astype(wide, copy=False)

        x = x.astype(wide, copy=False)
        w, r, b = whole("W"), whole("R"), whole("B")
        peepholes = whole("P") if self.has_peepholes else None
        states = [whole(key) for key in self.state_names]
        if self.layout:
            x, states = x.swapaxes(0, 1), [state.swapaxes(0, 1) for state in states]
        weights = [
            Weights(w[i], r[i], *_halves(b[i]), None if peepholes is None else peepholes[i], activations)
            for i, activations in enumerate(self.activations)
        ]
        return _Read(x, weights, lengths, [tuple(state[i] for state in states) for i in range(len(weights))])


def _halves(bias: Array) -> tuple[Array, Array]:
    return bias[: len(bias) // 2], bias[len(bias) // 2 :]
