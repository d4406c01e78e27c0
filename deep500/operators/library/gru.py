"""ONNX GRU."""

from __future__ import annotations

from typing import Any

import numpy as np

from deep500.operators import attributes
from deep500.operators.library._recurrent import Gradients, RecurrentOperator, States, Weights
from deep500.operators.operator import Array

__all__ = ["GRU"]


class GRU(RecurrentOperator):
    r"""Layer of gated recurrent units.

    .. math::
        z_t &= f(X_t W_z^T + H_{t-1} R_z^T + W_{bz} + R_{bz}) \\
        r_t &= f(X_t W_r^T + H_{t-1} R_r^T + W_{br} + R_{br}) \\
        h_t &= g(X_t W_h^T + (r_t \odot H_{t-1}) R_h^T + R_{bh} + W_{bh}) \\
        H_t &= (1 - z_t) \odot h_t + z_t \odot H_{t-1}

    With ``linear_before_reset``, :math:`h_t = g(X_t W_h^T + r_t \odot (H_{t-1} R_h^T + R_{bh}) + W_{bh})`.

    Inputs X ``[T, N, I]``, W ``[directions, 3H, I]`` (z, r, h), R ``[directions, 3H, H]``, optionally B
    ``[directions, 6H]``, sequence_lens ``[N]`` (int32) and initial_h ``[directions, N, H]``; outputs, always both, Y
    ``[T, directions, N, H]`` and Y_h ``[directions, N, H]``. With ``layout`` 1 the batch is the first axis of all but
    the weights. After a sequence's end Y is 0, and Y_h is its state at its end. 16-bit floats are computed in float32.

    Source: ONNX GRU, version 22; https://arxiv.org/abs/1406.1078.
    """

    gates = 3
    default_activations = ("Sigmoid", "Tanh")

    def __init__(self, *, linear_before_reset: int = 0, **recurrent: Any) -> None:
        """Set the attributes.

        Args:
            linear_before_reset: 1 to multiply with the reset gate after R instead of before.
            **recurrent: Those of every recurrent operator; see
                :class:`~deep500.operators.library._recurrent.RecurrentOperator`.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        super().__init__(**recurrent)
        self.linear_before_reset = bool(attributes.integer("GRU", "linear_before_reset", linear_before_reset))

    def step(self, x: Array, state: States, weights: Weights) -> tuple[States, Any]:
        """Return the next hidden state; and the gates, and what is multiplied with the reset gate."""
        f, g = weights.activations
        h, size = state[0], state[0].shape[1]
        gates = f(x[:, : 2 * size] + h @ weights.hidden[: 2 * size].T + weights.hidden_bias[: 2 * size])
        z, r = np.split(gates.value, 2, axis=1)
        matrix, bias = weights.hidden[2 * size :], weights.hidden_bias[2 * size :]
        if self.linear_before_reset:
            reset = h @ matrix.T + bias
            new = g(x[:, 2 * size :] + r * reset)
        else:
            reset = h
            new = g(x[:, 2 * size :] + (r * h) @ matrix.T + bias)
        return ((1 - z) * new.value + z * h,), (gates, new, reset)

    def step_backward(
        self, by_next: States, saved: Any, state: States, weights: Weights, total: Gradients
    ) -> tuple[Array, States]:
        """Return the gradients by the input's share and by the hidden state before."""
        gates, new, reset = saved
        h, size = state[0], state[0].shape[1]
        z, r = np.split(gates.value, 2, axis=1)
        by_h = by_next[0] * z
        by_new = by_next[0] * (1 - z) * new.slope
        matrix = weights.hidden[2 * size :]
        if self.linear_before_reset:
            by_r, by_linear = by_new * reset, by_new * r
            by_h = by_h + by_linear @ matrix
            total.hidden[2 * size :] += by_linear.T @ h
        else:
            by_linear = by_new
            by_product = by_new @ matrix
            by_r, by_h = by_product * h, by_h + by_product * r
            total.hidden[2 * size :] += by_new.T @ (r * h)
        total.hidden_bias[2 * size :] += by_linear.sum(axis=0)
        by_gates = np.concatenate([by_next[0] * (h - new.value), by_r], axis=1) * gates.slope
        total.hidden[: 2 * size] += by_gates.T @ h
        total.hidden_bias[: 2 * size] += by_gates.sum(axis=0)
        by_h = by_h + by_gates @ weights.hidden[: 2 * size]
        return np.concatenate([by_gates, by_new], axis=1), (by_h,)
