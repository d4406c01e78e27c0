"""Recurrent cells, step by step: for what PyTorch's recurrent kernels do not offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch._recording import recorded
from deep500.networks.operator_node import OperatorNode

__all__ = ["Activation", "read_activations", "run_cells"]

#: Name, alpha and beta of an activation function.
Activation: TypeAlias = tuple[str, float, float]

_State: TypeAlias = tuple[torch.Tensor, ...]

#: Function of x, alpha and beta; how many of the two it takes, and what ONNX' operator has for them.
_FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor, float, float], torch.Tensor], int, float, float]] = {
    "relu": (lambda x, a, b: torch.relu(x), 0, 0.0, 0.0),
    "tanh": (lambda x, a, b: torch.tanh(x), 0, 0.0, 0.0),
    "sigmoid": (lambda x, a, b: torch.sigmoid(x), 0, 0.0, 0.0),
    "affine": (lambda x, a, b: a * x + b, 2, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: F.leaky_relu(x, a), 1, 0.01, 0.0),
    "thresholdedrelu": (lambda x, a, b: torch.where(x >= a, x, 0.0), 1, 1.0, 0.0),
    "scaledtanh": (lambda x, a, b: a * torch.tanh(b * x), 2, 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: torch.clamp(a * x + b, 0.0, 1.0), 2, 0.2, 0.5),
    "elu": (lambda x, a, b: F.elu(x, a), 1, 1.0, 0.0),
    "softsign": (lambda x, a, b: F.softsign(x), 0, 0.0, 0.0),
    "softplus": (lambda x, a, b: F.softplus(x, threshold=50.0), 0, 0.0, 0.0),
}


def read_activations(
    node: OperatorNode, defaults: Sequence[str], directions: int
) -> tuple[tuple[Activation, ...], ...]:
    """Return the activation functions of every direction.

    The values of ``activation_alpha`` and ``activation_beta`` belong to those functions, in order, that take one.

    Raises:
        InvalidNetworkError: A function is not one of the specification's, or their number is wrong.
    """
    names = list(node.attributes.get("activations") or list(defaults) * directions)
    if node.op_type == "RNN" and directions == 1:
        names = names[:1]  # the schema's default is that of two directions
    if len(names) != len(defaults) * directions or any(name.lower() not in _FUNCTIONS for name in names):
        raise InvalidNetworkError(
            f"{node.label} has activations={names}; accepted are {len(defaults) * directions} of "
            f"{', '.join(sorted(_FUNCTIONS))}."
        )
    alphas = list(node.attributes.get("activation_alpha") or ())
    betas = list(node.attributes.get("activation_beta") or ())
    found: list[Activation] = []
    for name in names:
        _, count, alpha, beta = _FUNCTIONS[name.lower()]
        alpha = alphas.pop(0) if count > 0 and alphas else alpha
        beta = betas.pop(0) if count > 1 and betas else beta
        found.append((name.lower(), float(alpha), float(beta)))
    return tuple(tuple(found[index : index + len(defaults)]) for index in range(0, len(found), len(defaults)))


def _apply(activation: Activation, x: torch.Tensor, clip: float | None) -> torch.Tensor:
    name, alpha, beta = activation
    return _FUNCTIONS[name][0](x if clip is None else torch.clamp(x, -clip, clip), alpha, beta)


class _Weights:
    """Weights of one direction: ``[gates hidden, ...]``, and what is the same for every step."""

    def __init__(self, kind: str, tensors: Sequence[torch.Tensor | None], direction: int, options: dict[str, Any]):
        w, r, b, peepholes = (None if value is None else value[direction] for value in tensors)
        assert w is not None
        assert r is not None
        self.kind, self.options = kind, options
        self.input, self.recurrence, self.hidden = w, r, r.shape[1]
        self.activations: Sequence[Activation] = options["activations"][direction]
        self.clip: float | None = options["clip"]
        zero = w.new_zeros(w.shape[0])
        self.input_bias, self.recurrence_bias = (zero, zero) if b is None else b.chunk(2)
        self.peepholes = None if peepholes is None else peepholes.chunk(3)

    def before(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the inputs of all steps contribute to the gates."""
        gates = x @ self.input.t() + self.input_bias
        if self.kind != "GRU":
            return gates + self.recurrence_bias
        bias = self.recurrence_bias.clone()
        if self.options["linear_before_reset"]:
            bias = torch.cat((bias[: 2 * self.hidden], torch.zeros_like(bias[2 * self.hidden :])))
        return gates + bias

    def step(self, gates: torch.Tensor, state: _State) -> _State:
        """Return the next state."""
        return {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.kind](gates, state)

    def _act(self, index: int, x: torch.Tensor) -> torch.Tensor:
        return _apply(self.activations[index], x, self.clip)

    def _rnn(self, gates: torch.Tensor, state: _State) -> _State:
        return (self._act(0, gates + state[0] @ self.recurrence.t()),)

    def _gru(self, gates: torch.Tensor, state: _State) -> _State:
        (h,), n = state, 2 * self.hidden
        z, r = self._act(0, gates[:, :n] + h @ self.recurrence[:n].t()).chunk(2, 1)
        if self.options["linear_before_reset"]:
            inner = r * (h @ self.recurrence[n:].t() + self.recurrence_bias[n:])
        else:
            inner = (r * h) @ self.recurrence[n:].t()
        return ((1 - z) * self._act(1, gates[:, n:] + inner) + z * h,)

    def _lstm(self, gates: torch.Tensor, state: _State) -> _State:
        h, c = state
        i, o, f, g = (gates + h @ self.recurrence.t()).chunk(4, 1)
        if self.peepholes is not None:
            i, f = i + self.peepholes[0] * c, f + self.peepholes[2] * c
        i = self._act(0, i)
        f = 1 - i if self.options["input_forget"] else self._act(0, f)
        c = f * c + i * self._act(1, g)
        o = self._act(0, o if self.peepholes is None else o + self.peepholes[1] * c)
        return o * self._act(2, c), c


@recorded
def run_cells(
    kind: str,
    x: torch.Tensor,
    weights: Sequence[torch.Tensor | None],
    lengths: torch.Tensor | None,
    states: Sequence[torch.Tensor],
    direction: str,
    options: dict[str, Any],
) -> tuple[torch.Tensor, ...]:
    """Run cells over sequences.

    A state changes while its sequence lasts only; so the reverse direction begins at the end of each sequence.

    Args:
        kind: ``"RNN"``, ``"GRU"`` or ``"LSTM"``.
        x: Inputs ``[time, batch, features]``.
        weights: W, R, B and P as ONNX has them; the last two may be absent.
        lengths: Steps of every sequence.
        states: First states ``[directions, batch, hidden]``.
        direction: ``"forward"``, ``"reverse"`` or ``"bidirectional"``.
        options: ``activations``, ``clip``, ``linear_before_reset`` and ``input_forget``.

    Returns:
        Outputs ``[time, directions, batch, hidden]``, and the last states.
    """
    sides = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    outputs, lasts = [], []
    for index, is_reverse in enumerate(sides):
        cell = _Weights(kind, weights, index, options)
        gates = cell.before(x)
        state = tuple(value[index] for value in states)
        rows: list[torch.Tensor] = []
        for time in reversed(range(x.shape[0])) if is_reverse else range(x.shape[0]):
            following = cell.step(gates[time], state)
            output = following[0]
            if lengths is not None:
                lasting = (lengths > time).unsqueeze(1)
                following = tuple(torch.where(lasting, new, old) for new, old in zip(following, state))
                output = torch.where(lasting, output, 0.0)
            state = following
            rows.append(output)
        ordered = rows[::-1] if is_reverse else rows
        outputs.append(torch.stack(ordered) if ordered else x.new_zeros((0, *state[0].shape)))
        lasts.append(state)
    return torch.stack(outputs, 1), *(torch.stack(parts) for parts in zip(*lasts))
