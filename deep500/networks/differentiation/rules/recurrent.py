"""Derivatives of recurrent operators, written as a Scan over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx
import onnx.helper

from deep500.networks.differentiation.builder import GraphBuilder, Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import defined_by_others
from deep500.networks.differentiation.rules.control_flow import graph_of

__all__: list[str] = []

_Function = Callable[[Value], Value]

#: Defaults of the parameters that an activation has. Source: ONNX LSTM-22.
_ALPHAS = {"Affine": 1.0, "LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "ScaledTanh": 1.0, "HardSigmoid": 0.2, "Elu": 1.0}
_BETAS = {"Affine": 0.0, "ScaledTanh": 1.0, "HardSigmoid": 0.5}


@dataclass
class _Direction:
    """What one direction multiplies with: everything that its steps read around them."""

    hidden: Value  # R transposed, [H, G H]
    hidden_bias: Value  # what is added only after R, [G H]
    peepholes: list[Value] | None
    functions: list[_Function]


_Step = Callable[[ReversedNode, Value, list[Value], _Direction], list[Value]]


@defined_by_others("RNN", since=7)
def rnn(node: ReversedNode) -> tuple[Value, ...]:
    """``H_t = f(X_t W^T + H_{t-1} R^T + b)``. Source: ONNX RNN-22."""
    return _recurrent(node, 1, ["Tanh"], 1, _rnn_step)


def _rnn_step(node: ReversedNode, x: Value, states: list[Value], way: _Direction) -> list[Value]:
    (f,) = way.functions
    return [f(x + x.builder.op("MatMul", states[0], way.hidden) + way.hidden_bias)]


@defined_by_others("GRU", since=7)
def gru(node: ReversedNode) -> tuple[Value, ...]:
    """``H_t = (1 - z) h + z H_{t-1}``. Source: ONNX GRU-22."""
    return _recurrent(node, 3, ["Sigmoid", "Tanh"], 1, _gru_step)


def _gru_step(node: ReversedNode, x: Value, states: list[Value], way: _Direction) -> list[Value]:
    f, g = way.functions
    write, (h,) = x.builder, states
    xs, matrices = _split(x, 3, -1), _split(way.hidden, 3, -1)
    biases = _split(way.hidden_bias, 3, -1)
    z, r = (f(xs[i] + write.op("MatMul", h, matrices[i]) + biases[i]) for i in (0, 1))
    if node.get("linear_before_reset", 0):
        new = g(xs[2] + r * (write.op("MatMul", h, matrices[2]) + biases[2]))
    else:
        new = g(xs[2] + write.op("MatMul", r * h, matrices[2]) + biases[2])
    return [(1.0 - z) * new + z * h]


@defined_by_others("LSTM", since=7)
def lstm(node: ReversedNode) -> tuple[Value, ...]:
    """``C_t = f C_{t-1} + i c, H_t = o h(C_t)``. Source: ONNX LSTM-22."""
    return _recurrent(node, 4, ["Sigmoid", "Tanh", "Tanh"], 2, _lstm_step)


def _lstm_step(node: ReversedNode, x: Value, states: list[Value], way: _Direction) -> list[Value]:
    f, g, h = way.functions
    write, (hidden, cell) = x.builder, states
    sums = x + write.op("MatMul", hidden, way.hidden) + way.hidden_bias
    sum_i, sum_o, sum_f, sum_c = _split(sums, 4, -1)
    peep = way.peepholes
    i = f(sum_i if peep is None else sum_i + peep[0] * cell)
    sum_f = sum_f if peep is None else sum_f + peep[2] * cell
    forget = 1.0 - i if node.get("input_forget", 0) else f(sum_f)
    new = forget * cell + i * g(sum_c)
    o = f(sum_o if peep is None else sum_o + peep[1] * new)
    return [o * h(new), new]


def _split(value: Value, count: int, axis: int) -> list[Value]:
    return list(value.builder.ops("Split", value, count=count, axis=axis, num_outputs=count))


def _recurrent(node: ReversedNode, gates: int, default: list[str], states: int, step: _Step) -> tuple[Value, ...]:
    """Return Y and the last states."""
    write, x = node.builder, node.input(0)
    layout, direction = node.get("layout", 0), node.get("direction", "forward")
    ways = {"forward": [0], "reverse": [1]}.get(direction, [0, 1])
    functions = _activations(node, default, len(ways))
    if layout:
        x = write.op("Transpose", x, perm=[1, 0, 2])
    rows: list[Value] = []
    lasts: list[list[Value]] = [[] for _ in range(states)]
    for index, way in enumerate(ways):
        found = _one_direction(node, x, index, way, gates, states, functions[index], step)
        rows.append(found[-1])
        for i in range(states):
            lasts[i].append(found[i])
    axis = write.ints(1)
    y = _joined([write.op("Unsqueeze", row, axis) for row in rows], 1)
    first = write.ints(0)
    ends = [_joined([write.op("Unsqueeze", part, first) for part in parts], 0) for parts in lasts]
    if layout:
        y = write.op("Transpose", y, perm=[2, 0, 1, 3])
        ends = [write.op("Transpose", end, perm=[1, 0, 2]) for end in ends]
    return y, *ends


def _joined(parts: list[Value], axis: int) -> Value:
    return parts[0] if len(parts) == 1 else parts[0].builder.op("Concat", *parts, axis=axis)


def _one_direction(
    node: ReversedNode,
    x: Value,
    index: int,
    way: int,
    gates: int,
    states: int,
    functions: list[_Function],
    step: _Step,
) -> tuple[Value, ...]:
    """Return the last states and all hidden states ``[T, N, H]`` of one direction."""
    write, lengths = node.builder, node.optional(4)
    w, r = (_entry(node.input(i), index) for i in (1, 2))
    hidden_size = write.size(r, 1)
    bias = node.optional(3)
    turned = write.op("Transpose", w, perm=[1, 0])
    projected = write.op("MatMul", x, turned)
    zero = write.zeros(hidden_size * gates, x)
    hidden_bias = zero
    if bias is not None:
        own, hidden_bias = write.ops("Split", _entry(bias, index), count=2, axis=0, num_outputs=2)
        projected = projected + own
    peepholes = node.optional(7) if states == 2 else None
    shared = _Direction(
        write.op("Transpose", r, perm=[1, 0]),
        hidden_bias,
        None if peepholes is None else _split(_entry(peepholes, index), 3, 0),
        functions,
    )
    start = [_initial(node, 5 + i, index, x, hidden_size) for i in range(states)]
    scanned = [projected]
    if lengths is not None:
        count = write.op("Squeeze", write.size(x, 0), write.ints(0))
        scanned.append(write.op("Range", write.constant(0), count, write.constant(1)))
    body = _body(node, write.child(), x.element_type, states, shared, lengths, step)
    made = write.ops(
        "Scan",
        *start,
        *scanned,
        count=states + 1,
        body=body,
        num_scan_inputs=len(scanned),
        scan_input_directions=[way] * len(scanned),
        scan_output_directions=[way],
    )
    for value, rank in zip(made, [2] * states + [3], strict=True):
        write.types[value.name] = onnx.helper.make_tensor_type_proto(x.element_type, [None] * rank)
    return made


def _body(
    node: ReversedNode,
    write: GraphBuilder,
    kind: int,
    states: int,
    shared: _Direction,
    lengths: Value | None,
    step: _Step,
) -> onnx.GraphProto:
    """Return the graph of one step."""
    before = [write.input("state", element_type=kind, shape=[None, None]) for _ in range(states)]
    x = write.input("x", element_type=kind, shape=[None, None])
    given = [*before, x]
    after = step(node, x, before, _inside(shared, write))
    row = after[0]
    if lengths is not None:
        time = write.input("time", element_type=onnx.TensorProto.INT64, shape=[])
        given.append(time)
        wide = write.op("Cast", write.value(lengths.name), to=onnx.TensorProto.INT64)
        runs = write.op("Unsqueeze", time < wide, write.ints(1))
        row = write.where(runs, after[0], 0)
        after = [write.where(runs, new, old) for new, old in zip(after, before, strict=True)]
    return graph_of(write, "step", given, [*after, row])


def _inside(shared: _Direction, write: GraphBuilder) -> _Direction:
    """Return what steps read around them as values of the body."""
    peepholes = None if shared.peepholes is None else [write.value(p.name) for p in shared.peepholes]
    return _Direction(
        write.value(shared.hidden.name), write.value(shared.hidden_bias.name), peepholes, shared.functions
    )


def _entry(stacked: Value, index: int) -> Value:
    return stacked.builder.op("Gather", stacked, stacked.builder.constant(index), axis=0)


def _initial(node: ReversedNode, place: int, index: int, x: Value, hidden_size: Value) -> Value:
    write, given = node.builder, node.optional(place)
    if given is None:
        made = write.zeros(write.sizes(write.size(x, 1), hidden_size), x)
        write.types[made.name] = onnx.helper.make_tensor_type_proto(x.element_type, [None, None])
        return made
    return write.op("Gather", given, write.constant(index), axis=1 if node.get("layout", 0) else 0)


def _activations(node: ReversedNode, default: list[str], directions: int) -> list[list[_Function]]:
    names = list(node.get("activations", None) or default * directions)
    alphas, betas = (list(node.get(f"activation_{name}", None) or []) for name in ("alpha", "beta"))
    clip = node.get("clip", None)
    made = []
    for name in names:
        alpha = (alphas.pop(0) if alphas else _ALPHAS[name]) if name in _ALPHAS else 0.0
        beta = (betas.pop(0) if betas else _BETAS[name]) if name in _BETAS else 0.0
        made.append(_function(name, alpha, beta, clip))
    each = len(default)
    return [made[i * each : (i + 1) * each] for i in range(directions)]


def _function(name: str, alpha: float, beta: float, clip: float | None) -> _Function:
    """Return an activation, before which values are limited."""

    def apply(x: Value) -> Value:
        write = x.builder
        if clip is not None:
            x = write.op("Clip", x, -clip, clip)
        if name == "Affine":
            return x * alpha + beta
        if name == "ScaledTanh":
            return write.op("Tanh", x * beta) * alpha
        # By others where the operator is a function, or differs at its threshold.
        if name == "ThresholdedRelu":
            return write.where(x >= alpha, x, 0)
        if name == "HardSigmoid":
            return write.op("Clip", x * alpha + beta, 0, 1)
        if name == "Softsign":
            return x / (write.op("Abs", x) + 1.0)
        if name in ("LeakyRelu", "Elu"):
            return write.op(name, x, alpha=alpha)
        return write.op(name, x)

    return apply
