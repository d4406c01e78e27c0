"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch._recording import recorded, spread
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._cells import Activation, read_activations, run_cells
from deep500.frameworks.pytorch.lowering._known import known_sizes
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}

#: Order of PyTorch's gates among ONNX': of input, output, forget, cell; of update, reset, hidden.
_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}

_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


@lowerings.register("LSTM", since=14)
def lstm(node: OperatorNode, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, *rest: Any) -> Any:
    """Long short-term memory: outputs of all steps, and the last hidden and cell states. Source: ONNX LSTM-22."""
    h, c, peepholes = (*rest, None, None, None)[:3]
    return _recurrent(node, x, (w, r, b, peepholes), lengths, (h, c))


@lowerings.register("GRU", since=14)
def gru(node: OperatorNode, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    """Gated recurrent unit: outputs of all steps, and the last hidden state. Source: ONNX GRU-22."""
    return _recurrent(node, x, (w, r, b, None), lengths, (h,))


@lowerings.register("RNN", since=14)
def rnn(node: OperatorNode, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    """Simple recurrent layer: outputs of all steps, and the last hidden state. Source: ONNX RNN-22."""
    return _recurrent(node, x, (w, r, b, None), lengths, (h,))


def _recurrent(node: OperatorNode, x: Any, weights: Sequence[Any], lengths: Any, states: Sequence[Any]) -> Any:
    """Run PyTorch's kernel where it means the same, else the cells step by step."""
    direction = node.attributes.get("direction", "forward")
    if direction not in _DIRECTIONS:
        raise InvalidNetworkError(
            f"{node.label} has direction={direction!r}; accepted are forward, reverse and bidirectional."
        )
    count = _DIRECTIONS[direction]
    batch_first = bool(node.attributes.get("layout", 0))
    activations = read_activations(node, _DEFAULTS[node.op_type], count)
    kernel = None if weights[3] is not None else _kernel(node, activations)
    hidden = node.attributes.get("hidden_size") or (known_sizes(node, 2, 2) or (weights[1].size(2),))[0]
    batch = x.size(0 if batch_first else 1)
    first = [x.new_zeros((count, batch, hidden)) if s is None else _swapped(s) if batch_first else s for s in states]
    options = {
        "activations": activations,
        "clip": node.attributes.get("clip"),
        "linear_before_reset": bool(node.attributes.get("linear_before_reset", 0)),
        "input_forget": bool(node.attributes.get("input_forget", 0)),
    }
    if kernel is None:
        x = torch.permute(x, (1, 0, 2)) if batch_first else x
        y, *lasts = spread(run_cells(node.op_type, x, weights, lengths, first, direction, options), 1 + len(states))
        y = torch.permute(y, (2, 0, 1, 3)) if batch_first else y
    elif lengths is None:
        y, *lasts = _by_kernel(node, kernel, x, weights, first, hidden)
    else:
        ordered = _ordered(node, weights, hidden)
        call = (kernel, x, weights, ordered, lengths, first, direction, batch_first, options)
        y, *lasts = spread(_by_kernel_with_lengths(node.op_type, *call), 1 + len(states))
    lasts = [_swapped(last) for last in lasts] if batch_first else lasts
    return y, *lasts


def _swapped(state: Any) -> Any:
    return torch.permute(state, (1, 0, 2))


def _kernel(node: OperatorNode, activations: Sequence[Sequence[Activation]]) -> str | None:
    """Return the name of PyTorch's kernel that means the same, ``None`` where there is none."""
    names = {tuple(name for name, _, _ in functions) for functions in activations}
    if len(names) > 1 or node.attributes.get("clip") or node.attributes.get("input_forget", 0):
        return None
    (functions,) = names
    if node.op_type == "RNN":
        return {"tanh": "rnn_tanh", "relu": "rnn_relu"}.get(functions[0])
    if functions != tuple(name.lower() for name in _DEFAULTS[node.op_type]):
        return None
    if node.op_type == "LSTM":
        return "lstm"
    return "gru" if node.attributes.get("linear_before_reset", 0) else None


def _ordered(node: OperatorNode, weights: Sequence[Any], hidden: Any) -> list[Any]:
    """Return the weights as PyTorch's kernels want them: for each direction W, R and the two biases."""
    w, r, b, _ = weights
    gates = _GATES[node.op_type]
    size = len(gates) * hidden
    found = []
    for index in range(_DIRECTIONS[node.attributes.get("direction", "forward")]):
        parts = [w[index], r[index]]
        if b is not None:
            parts += [b[index][:size], b[index][size:]]
        found += [_permuted_gates(part, gates, hidden) for part in parts]
    return found


def _permuted_gates(part: Any, gates: Sequence[int], hidden: Any) -> Any:
    """Return rows of gates in another order; neighbours stay together."""
    if len(gates) == 1:
        return part
    runs: list[list[int]] = []
    for gate in gates:
        if runs and runs[-1][1] == gate:
            runs[-1][1] = gate + 1
        else:
            runs.append([gate, gate + 1])
    return torch.cat([part[begin * hidden : end * hidden] for begin, end in runs])


def _by_kernel(
    node: OperatorNode, kernel: str, x: Any, weights: Sequence[Any], states: Sequence[Any], hidden: Any
) -> tuple[Any, ...]:
    """Run PyTorch's kernel over whole sequences."""
    direction = node.attributes.get("direction", "forward")
    batch_first = bool(node.attributes.get("layout", 0))
    time = 1 if batch_first else 0
    x = torch.flip(x, (time,)) if direction == "reverse" else x
    count = _DIRECTIONS[direction]
    ordered = _ordered(node, weights, hidden)
    call = (kernel, x, states, ordered, weights[2] is not None, count == 2, batch_first)
    y, *lasts = spread(_run_kernel(*call), 1 + len(states))
    y = torch.flip(y, (time,)) if direction == "reverse" else y
    if count == 1:
        return torch.unsqueeze(y, 2 if batch_first else 1), *lasts
    y = torch.reshape(y, (y.size(0), y.size(1), 2, hidden))
    return y if batch_first else torch.permute(y, (0, 2, 1, 3)), *lasts


@recorded
def _run_kernel(
    kernel: str,
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    has_biases: bool,
    is_bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    """Call a recurrent kernel; it keeps what a backward pass needs where there may be one."""
    if not x.shape[1 if batch_first else 0]:  # the kernels refuse empty sequences
        width = states[0].shape[2] * (2 if is_bidirectional else 1)
        return x.new_zeros((x.shape[0], x.shape[1], width)), *states
    first = states[0] if len(states) == 1 else list(states)
    training = torch.is_grad_enabled()
    run = getattr(torch, kernel)
    results: tuple[torch.Tensor, ...] = run(
        x, first, list(weights), has_biases, 1, 0.0, training, is_bidirectional, batch_first
    )
    return results


@recorded
def _by_kernel_with_lengths(
    kind: str,
    kernel: str,
    x: torch.Tensor,
    weights: Sequence[torch.Tensor | None],
    ordered: Sequence[torch.Tensor],
    lengths: torch.Tensor,
    states: Sequence[torch.Tensor],
    direction: str,
    batch_first: bool,
    options: dict[str, Any],
) -> tuple[torch.Tensor, ...]:
    """Run PyTorch's kernel over sequences of several lengths, packed; step by step where one of them is empty."""
    rows = x.transpose(0, 1) if batch_first else x
    steps = lengths.to("cpu", torch.int64)
    if steps.numel() == 0 or int(steps.min()) < 1:
        y, *lasts = run_cells(kind, rows, weights, lengths, states, direction, options)
        return y.permute(2, 0, 1, 3) if batch_first else y, *lasts
    positions = None
    if direction == "reverse":
        time, last = torch.arange(rows.shape[0], device=x.device).unsqueeze(1), lengths.to(torch.int64) - 1
        positions = torch.where(time <= last, last - time, time).unsqueeze(2)
        rows = rows.gather(0, positions.expand(rows.shape))
    packed = torch.nn.utils.rnn.pack_padded_sequence(rows, steps, enforce_sorted=False)
    order, back = packed.sorted_indices, packed.unsorted_indices
    assert order is not None
    assert back is not None
    starts = [state.index_select(1, order) for state in states]
    first = starts[0] if len(starts) == 1 else starts
    training, both = torch.is_grad_enabled(), direction == "bidirectional"
    run = getattr(torch, kernel)
    data, *lasts = run(
        packed.data, packed.batch_sizes, first, list(ordered), weights[2] is not None, 1, 0.0, training, both
    )
    output = torch.nn.utils.rnn.PackedSequence(data, packed.batch_sizes, order, back)
    y, _ = torch.nn.utils.rnn.pad_packed_sequence(output, total_length=rows.shape[0])
    y = y if positions is None else y.gather(0, positions.expand(y.shape))
    y = y.reshape(y.shape[0], y.shape[1], 2 if both else 1, -1)
    lasts = [last.index_select(1, back) for last in lasts]
    return y.transpose(0, 1) if batch_first else y.transpose(1, 2), *lasts
