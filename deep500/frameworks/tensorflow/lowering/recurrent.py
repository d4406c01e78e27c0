"""Recurrent layers.

The inputs of all steps are multiplied by their weights at once, before the loop over time, in which only the hidden
state is.
"""

from __future__ import annotations

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.lowering._gate_functions import GateFunction, read_gate_functions
from deep500.frameworks.tensorflow.lowering._lstm import can_be_fused, fused_lstm, lstm_step
from deep500.frameworks.tensorflow.lowering._recurrent_layer import Direction, read_layer
from deep500.frameworks.tensorflow.lowering._time_loop import Step, Tensors
from deep500.networks.operator_node import OperatorNode

__all__ = ["gru", "lstm", "rnn"]


@lowerings.register("RNN", since=7)
def rnn(
    node: OperatorNode,
    x: tf.Tensor,
    w: tf.Tensor,
    r: tf.Tensor,
    b: tf.Tensor | None = None,
    lengths: tf.Tensor | None = None,
    initial_h: tf.Tensor | None = None,
) -> tuple[tf.Tensor, ...]:
    r"""Run a simple recurrent layer, :math:`h_t = f(W x_t + R h_{t-1} + b_W + b_R)`.

    Args:
        node: The node.
        x: Sequences, ``[T, N, I]``, or ``[N, T, I]`` with ``layout`` 1.
        w: ``[D, H, I]`` for D directions.
        r: ``[D, H, H]``.
        b: ``[D, 2 H]``.
        lengths: Length of each sequence, ``[N]``; T by default.
        initial_h: ``[D, N, H]``, or ``[N, D, H]`` with ``layout`` 1; zeros by default.

    Returns:
        All hidden states, ``[T, D, N, H]`` (``[N, T, D, H]``), and the last ones, shaped as ``initial_h``.

    Source: ONNX RNN-22.
    """
    layer = read_layer(node, x, w, r, b, lengths, [initial_h])
    functions = read_gate_functions(node, ["Tanh"], layer.count)
    biases = [d.input_bias if d.state_bias is None else d.input_bias + d.state_bias for d in layer.directions]
    return layer.run([_rnn_step(d, f) for d, f in zip(layer.directions, functions, strict=True)], biases)


def _rnn_step(direction: Direction, functions: list[GateFunction]) -> Step:
    weight = direction.state_weight

    def step(state: Tensors, entries: Tensors) -> tuple[Tensors, Tensors]:
        h = functions[0](entries[0] + tf.linalg.matmul(state[0], weight))
        return (h,), (h,)

    return step


@lowerings.register("GRU", since=7)
def gru(
    node: OperatorNode,
    x: tf.Tensor,
    w: tf.Tensor,
    r: tf.Tensor,
    b: tf.Tensor | None = None,
    lengths: tf.Tensor | None = None,
    initial_h: tf.Tensor | None = None,
) -> tuple[tf.Tensor, ...]:
    r"""Run a layer of gated recurrent units, :math:`h_t = (1 - z_t) g(...) + z_t h_{t-1}`.

    Args:
        node: The node.
        x: Sequences, ``[T, N, I]``, or ``[N, T, I]`` with ``layout`` 1.
        w: ``[D, 3 H, I]`` for D directions; gates z, r, h.
        r: ``[D, 3 H, H]``.
        b: ``[D, 6 H]``.
        lengths: Length of each sequence, ``[N]``; T by default.
        initial_h: ``[D, N, H]``, or ``[N, D, H]`` with ``layout`` 1; zeros by default.

    Returns:
        All hidden states, ``[T, D, N, H]`` (``[N, T, D, H]``), and the last ones, shaped as ``initial_h``.

    Source: ONNX GRU-22.
    """
    layer = read_layer(node, x, w, r, b, lengths, [initial_h])
    functions = read_gate_functions(node, ["Sigmoid", "Tanh"], layer.count)
    linear = bool(node.attributes.get("linear_before_reset", 0))
    steps, biases = [], []
    for direction, own in zip(layer.directions, functions, strict=True):
        bias, late = direction.input_bias, None
        if direction.state_bias is not None:
            gates, late = tf.split(direction.state_bias, [2 * layer.hidden, layer.hidden])
            bias = bias + tf.concat([gates, tf.zeros_like(late) if linear else late], 0)
        biases.append(bias)
        steps.append(_gru_step(direction, own, layer.hidden, linear, late))
    return layer.run(steps, biases)


def _gru_step(
    direction: Direction, functions: list[GateFunction], hidden: int, linear: bool, bias: tf.Tensor | None
) -> Step:
    f, g = functions
    weight = direction.state_weight
    gate_weight, new_weight = tf.split(weight, [2 * hidden, hidden], 1)

    def step(state: Tensors, entries: Tensors) -> tuple[Tensors, Tensors]:
        (h,), (entry, *_) = state, entries
        given, given_new = tf.split(entry, [2 * hidden, hidden], 1)
        if linear:
            gates, new = tf.split(tf.linalg.matmul(h, weight), [2 * hidden, hidden], 1)
            z, r = tf.split(f(given + gates), 2, 1)
            new = g(given_new + r * (new if bias is None else new + bias))
        else:
            z, r = tf.split(f(given + tf.linalg.matmul(h, gate_weight)), 2, 1)
            new = g(given_new + tf.linalg.matmul(r * h, new_weight))
        h = (1 - z) * new + z * h
        return (h,), (h,)

    return step


@lowerings.register("LSTM", since=7)
def lstm(
    node: OperatorNode,
    x: tf.Tensor,
    w: tf.Tensor,
    r: tf.Tensor,
    b: tf.Tensor | None = None,
    lengths: tf.Tensor | None = None,
    initial_h: tf.Tensor | None = None,
    initial_c: tf.Tensor | None = None,
    peepholes: tf.Tensor | None = None,
) -> tuple[tf.Tensor, ...]:
    r"""Run a layer of long short-term memory, :math:`c_t = f_t c_{t-1} + i_t g(...)`, :math:`h_t = o_t h(c_t)`.

    Args:
        node: The node.
        x: Sequences, ``[T, N, I]``, or ``[N, T, I]`` with ``layout`` 1.
        w: ``[D, 4 H, I]`` for D directions; gates i, o, f, c.
        r: ``[D, 4 H, H]``.
        b: ``[D, 8 H]``.
        lengths: Length of each sequence, ``[N]``; T by default.
        initial_h: ``[D, N, H]``, or ``[N, D, H]`` with ``layout`` 1; zeros by default.
        initial_c: As ``initial_h``.
        peepholes: ``[D, 3 H]``; gates i, o, f.

    Returns:
        All hidden states, ``[T, D, N, H]`` (``[N, T, D, H]``), the last ones, and the last cells, shaped as
        ``initial_h``.

    Source: ONNX LSTM-22.
    """
    layer = read_layer(node, x, w, r, b, lengths, [initial_h, initial_c])
    if peepholes is not None and not peepholes.shape.is_compatible_with([layer.count, 3 * layer.hidden]):
        raise OperatorError(
            f"{node.label} was given peepholes of shape {peepholes.shape}; accepted is "
            f"[{layer.count}, {3 * layer.hidden}]."
        )
    biases = [d.input_bias if d.state_bias is None else d.input_bias + d.state_bias for d in layer.directions]
    seen = [None] * layer.count if peepholes is None else tf.unstack(peepholes, layer.count)
    if can_be_fused(node, layer):
        return layer.finish([fused_lstm(layer, *each) for each in zip(layer.directions, biases, seen, strict=True)])
    functions = read_gate_functions(node, ["Sigmoid", "Tanh", "Tanh"], layer.count)
    coupled = bool(node.attributes.get("input_forget", 0))
    steps = [lstm_step(*each, coupled) for each in zip(layer.directions, functions, seen, strict=True)]
    return layer.run(steps, biases)
