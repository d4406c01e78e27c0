"""Long short-term memory: one step, and TensorFlow's kernel of all steps."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from deep500.frameworks.tensorflow.lowering._gate_functions import GateFunction
from deep500.frameworks.tensorflow.lowering._parameters import size
from deep500.frameworks.tensorflow.lowering._recurrent_layer import Direction, Layer
from deep500.frameworks.tensorflow.lowering._tensors import is_empty
from deep500.frameworks.tensorflow.lowering._time_loop import Step, Tensors
from deep500.networks.operator_node import OperatorNode

__all__ = ["can_be_fused", "fused_lstm", "lstm_step"]

#: Largest state for which the kernel was faster than the loop with small and with large batches, on the processor.
_LARGEST_FUSED = 32


def lstm_step(direction: Direction, functions: list[GateFunction], peepholes: tf.Tensor | None, coupled: bool) -> Step:
    """Return what one direction does at each step.

    Args:
        direction: The direction.
        functions: f, g and h of the operator.
        peepholes: Weights of the cell in the gates i, o and f, ``[3 H]``.
        coupled: Whether the gate f is 1 - i.
    """
    f, g, h = functions
    weight = direction.state_weight
    seen = None if peepholes is None else tf.split(peepholes, 3)

    def step(state: Tensors, entries: Tensors) -> tuple[Tensors, Tensors]:
        hidden, cell = state
        gates = tf.split(entries[0] + tf.linalg.matmul(hidden, weight), 4, 1)
        given_i, given_o, given_f, given_c = gates
        i = f(given_i if seen is None else given_i + seen[0] * cell)
        forget = 1 - i if coupled else f(given_f if seen is None else given_f + seen[2] * cell)
        cell = forget * cell + i * g(given_c)
        o = f(given_o if seen is None else given_o + seen[1] * cell)
        hidden = o * h(cell)
        return (hidden, cell), (hidden,)

    return step


def can_be_fused(node: OperatorNode, layer: Layer) -> bool:
    """Return whether TensorFlow's kernel of a whole layer does what the node says, and does it faster than a loop."""
    names = node.attributes.get("activations") or []
    usual = ["sigmoid", "tanh", "tanh"] * layer.count
    return (
        layer.x.dtype == tf.float32
        and layer.hidden <= _LARGEST_FUSED
        and layer.lengths is None
        and not is_empty(layer.x)
        and not node.attributes.get("clip")
        and not node.attributes.get("input_forget")
        and (not names or [name.lower() for name in names] == usual)
    )


def fused_lstm(
    layer: Layer, direction: Direction, bias: Any, peepholes: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Run one direction of a layer in one kernel.

    Returns:
        All hidden states, ``[T, N, H]``, the last one, and the last cell.
    """
    hidden = layer.hidden
    rows = tf.concat([tf.transpose(direction.input_weight), direction.state_weight], 0)
    none = tf.zeros([hidden], layer.x.dtype)
    i, o, f = [none] * 3 if peepholes is None else tf.split(peepholes, 3)
    initial_h, initial_c = direction.initial
    # The gradient of the kernel's second version takes the gates in the order of the first one (TensorFlow 2.21).
    result = tf.raw_ops.BlockLSTM(
        seq_len_max=tf.cast(size(layer.x, 0), tf.int64),
        x=layer.flipped(layer.x, direction),
        cs_prev=initial_c,
        h_prev=initial_h,
        w=_in_kernel_order(rows, 1),
        wci=i,
        wcf=f,
        wco=o,
        b=_in_kernel_order(bias + tf.zeros([4 * hidden], layer.x.dtype), 0),
        forget_bias=0.0,
        cell_clip=-1.0,
        use_peephole=peepholes is not None,
    )
    for tensor in (result.h, result.cs):
        tensor.set_shape([*layer.x.shape[:2], hidden])
    return layer.flipped(result.h, direction), result.h[-1], result.cs[-1]


def _in_kernel_order(weights: tf.Tensor, axis: int) -> tf.Tensor:
    """Return weights of the gates i, o, f, c in the kernel's order i, c, f, o."""
    i, o, f, c = tf.split(weights, 4, axis)
    return tf.concat([i, c, f, o], axis)
