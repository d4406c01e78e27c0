"""ONNX RNN."""

from __future__ import annotations

from typing import Any

from deep500.operators.library._recurrent import Gradients, RecurrentOperator, States, Weights
from deep500.operators.operator import Array

__all__ = ["RNN"]


class RNN(RecurrentOperator):
    r"""Simple recurrent layer.

    .. math::
        H_t = f(X_t W^T + H_{t-1} R^T + W_b + R_b)

    Inputs X ``[T, N, I]``, W ``[directions, H, I]``, R ``[directions, H, H]``, optionally B ``[directions, 2H]``,
    sequence_lens ``[N]`` (int32) and initial_h ``[directions, N, H]``; outputs, always both, Y
    ``[T, directions, N, H]`` and Y_h ``[directions, N, H]``. With ``layout`` 1 the batch is the first axis of all but
    the weights. After a sequence's end Y is 0, and Y_h is its state at its end. 16-bit floats are computed in float32.

    Source: ONNX RNN, version 22.
    """

    gates = 1
    default_activations = ("Tanh",)

    def step(self, x: Array, state: States, weights: Weights) -> tuple[States, Any]:
        """Return the next hidden state, and the activation."""
        gated = weights.activations[0](x + state[0] @ weights.hidden.T + weights.hidden_bias)
        return (gated.value,), gated

    def step_backward(
        self, by_next: States, saved: Any, state: States, weights: Weights, total: Gradients
    ) -> tuple[Array, States]:
        """Return the gradients by the input's share and by the hidden state before."""
        by_sum = by_next[0] * saved.slope
        total.hidden += by_sum.T @ state[0]
        total.hidden_bias += by_sum.sum(axis=0)
        return by_sum, (by_sum @ weights.hidden,)
