"""ONNX LSTM."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._recurrent import Gradients, RecurrentOperator, States, Weights
from deep500.operators.library._recurrent_activations import Gated
from deep500.operators.operator import Array

__all__ = ["LSTM"]


class _Saved(NamedTuple):
    """What a step computed: the gates, the new cell state, and the function h of it."""

    i: Gated
    o: Gated
    f: Gated
    c: Gated
    cell: Array
    h: Gated


class LSTM(RecurrentOperator):
    r"""Layer of long short-term memory cells, with peepholes P.

    .. math::
        i_t &= f(X_t W_i^T + H_{t-1} R_i^T + P_i \odot C_{t-1} + W_{bi} + R_{bi}) \\
        f_t &= f(X_t W_f^T + H_{t-1} R_f^T + P_f \odot C_{t-1} + W_{bf} + R_{bf}) \\
        c_t &= g(X_t W_c^T + H_{t-1} R_c^T + W_{bc} + R_{bc}) \\
        C_t &= f_t \odot C_{t-1} + i_t \odot c_t \\
        o_t &= f(X_t W_o^T + H_{t-1} R_o^T + P_o \odot C_t + W_{bo} + R_{bo}) \\
        H_t &= o_t \odot h(C_t)

    With ``input_forget``, :math:`f_t = 1 - i_t`. ``clip`` limits what goes into f, g and h, not the stored C.

    Inputs X ``[T, N, I]``, W ``[directions, 4H, I]`` (i, o, f, c), R ``[directions, 4H, H]``, optionally B
    ``[directions, 8H]``, sequence_lens ``[N]`` (int32), initial_h and initial_c ``[directions, N, H]``, and P
    ``[directions, 3H]`` (i, o, f); outputs, always all, Y ``[T, directions, N, H]``, Y_h and Y_c
    ``[directions, N, H]``. With ``layout`` 1 the batch is the first axis of all but the weights. After a sequence's end
    Y is 0, and the states are those at its end. 16-bit floats are computed in float32.

    Source: ONNX LSTM, version 22; S. Hochreiter and J. Schmidhuber, Long short-term memory (1997).
    """

    gates = 4
    state_names = ("initial_h", "initial_c")
    has_peepholes = True
    default_activations = ("Sigmoid", "Tanh", "Tanh")

    def __init__(self, *, input_forget: int = 0, **recurrent: Any) -> None:
        """Set the attributes.

        Args:
            input_forget: 1 to couple the forget gate to the input gate.
            **recurrent: Those of every recurrent operator; see
                :class:`~deep500.operators.library._recurrent.RecurrentOperator`.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        super().__init__(**recurrent)
        self.input_forget = bool(attributes.integer("LSTM", "input_forget", input_forget))

    def step(self, x: Array, state: States, weights: Weights) -> tuple[States, Any]:
        """Return the next hidden and cell state, and the gates."""
        f, g, h = weights.activations
        hidden, cell = state
        sums = x + hidden @ weights.hidden.T + weights.hidden_bias
        sum_i, sum_o, sum_f, sum_c = np.split(sums, 4, axis=1)
        p_i, p_o, p_f = np.split(_peepholes(weights), 3)
        i, c = f(sum_i + p_i * cell), g(sum_c)
        forget = Gated(1 - i.value, -i.slope) if self.input_forget else f(sum_f + p_f * cell)
        new = forget.value * cell + i.value * c.value
        o, out = f(sum_o + p_o * new), h(new)
        return (o.value * out.value, new), _Saved(i, o, forget, c, new, out)

    def step_backward(
        self, by_next: States, saved: Any, state: States, weights: Weights, total: Gradients
    ) -> tuple[Array, States]:
        """Return the gradients by the input's share and by the states before."""
        hidden, cell = state
        p_i, p_o, p_f = np.split(_peepholes(weights), 3)
        by_o = by_next[0] * saved.h.value * saved.o.slope
        by_new = by_next[1] + by_next[0] * saved.o.value * saved.h.slope + by_o * p_o
        by_i = by_new * saved.c.value * saved.i.slope
        by_f = by_new * cell * saved.f.slope
        if self.input_forget:  # the forget gate is a function of the input gate's sum
            by_i, by_f = by_i + by_f, np.zeros_like(by_f)
        by_c = by_new * saved.i.value * saved.c.slope
        by_sums = np.concatenate([by_i, by_o, by_f, by_c], axis=1)
        total.hidden += by_sums.T @ hidden
        total.hidden_bias += by_sums.sum(axis=0)
        if total.peepholes is not None:
            shares = [by_i * cell, by_o * saved.cell, by_f * cell]
            total.peepholes += np.concatenate([share.sum(axis=0) for share in shares])
        by_cell = by_new * saved.f.value + by_i * p_i + by_f * p_f
        return by_sums, (by_sums @ weights.hidden, by_cell)


def _peepholes(weights: Weights) -> Array:
    assert weights.peepholes is not None
    return weights.peepholes
