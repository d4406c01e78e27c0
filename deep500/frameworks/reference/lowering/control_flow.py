"""Branches and loops: the graphs that they hold run as lists of calls, and are differentiated as such."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.frameworks.reference._calls import added
from deep500.frameworks.reference.lowering import lowerings
from deep500.frameworks.reference.lowering._body import Body
from deep500.networks.operator_node import OperatorNode
from deep500.operators.operator import Array, Operator, OptionalArray

__all__: list[str] = []


class _If(Operator):
    """One of two graphs."""

    def __init__(self, node: OperatorNode) -> None:
        self._own = len(node.inputs)
        self._branches = {True: Body(node, node.graphs["then_branch"]), False: Body(node, node.graphs["else_branch"])}

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        branch, values = self._run(inputs)
        return tuple(branch.results(values))

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[Any, ...]:
        branch, values = self._run(fwd_inputs)
        _, by_captured = branch.differentiate(values, grads)
        return (None, *by_captured)

    def _run(self, inputs: Sequence[Any]) -> tuple[Body, dict[str, Any]]:
        condition = np.asarray(inputs[0])
        if condition.dtype != np.bool_ or condition.size != 1:
            raise OperatorError(
                f"If: received a condition of {condition.dtype} and shape {condition.shape}; accepted is one bool."
            )
        branch = self._branches[bool(condition.reshape(-1)[0])]
        return branch, branch.run((), inputs[self._own :])


class _Loop(Operator):
    """A graph that runs again and again, each time with the states of the time before."""

    def __init__(self, node: OperatorNode) -> None:
        self._node, self._own = node, len(node.inputs)
        self._body = Body(node, node.graphs["body"])
        self._states = len(self._body.inputs) - 2

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        runs, states = self._run(inputs)
        scanned = [[values[name] for values in runs] for name in self._body.outputs[1 + self._states :]]
        first = self._states
        return (*states, *(_stacked(rows, self._node, first + i, 0) for i, rows in enumerate(scanned)))

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[Any, ...]:
        runs, _ = self._run(fwd_inputs)
        by_states, by_scanned = list(grads[: self._states]), grads[self._states :]
        by_captured: list[Any] = [None] * (len(fwd_inputs) - self._own)
        for i in reversed(range(len(runs))):
            rows = [None if g is None else np.asarray(g)[i] for g in by_scanned]
            by_inputs, again = self._body.differentiate(runs[i], [None, *by_states, *rows])
            by_states = by_inputs[2:]
            by_captured = [added(a, b) for a, b in zip(by_captured, again, strict=True)]
        padded = [*by_states, *[None] * self._own]
        return (*[None] * min(2, self._own), *padded[: max(self._own - 2, 0)], *by_captured)

    def _run(self, inputs: Sequence[Any]) -> tuple[list[dict[str, Any]], list[Any]]:
        """Return the values of every run, and the last states."""
        own = [*inputs[: self._own], None, None][: max(self._own, 2)]
        limit, condition, *states = own
        captured = inputs[self._own :]
        goes_on = condition is None or bool(np.asarray(condition).reshape(-1)[0])
        count = None if limit is None else int(np.asarray(limit).reshape(-1)[0])
        runs: list[dict[str, Any]] = []
        for i in itertools.count():
            if not goes_on or (count is not None and i >= count):
                return runs, states
            values = self._body.run([np.array(i, np.int64), np.array(goes_on), *states], captured)
            runs.append(values)
            after, *states = self._body.results(values)[: 1 + self._states]
            goes_on = bool(np.asarray(after).reshape(-1)[0])
        raise AssertionError("itertools.count ends")


class _Scan(Operator):
    """A graph that runs for each entry of some tensors, with the states of the time before."""

    def __init__(self, node: OperatorNode) -> None:
        self._node, self._own = node, len(node.inputs)
        self._body = Body(node, node.graphs["body"])
        known = node.attributes
        count = int(known["num_scan_inputs"])
        self._states = self._own - count
        results = len(self._body.outputs) - self._states
        self._axes = known.get("scan_input_axes") or [0] * count
        self._backwards = known.get("scan_input_directions") or [0] * count
        self._output_axes = known.get("scan_output_axes") or [0] * results
        self._output_backwards = known.get("scan_output_directions") or [0] * results

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        runs, states = self._run(inputs)
        scanned = []
        for i, name in enumerate(self._body.outputs[self._states :]):
            rows = [values[name] for values in runs]
            if self._output_backwards[i]:
                rows.reverse()
            scanned.append(_stacked(rows, self._node, self._states + i, self._output_axes[i]))
        return (*states, *scanned)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[Any, ...]:
        runs, _ = self._run(fwd_inputs)
        by_states: list[Any] = [*grads, *[None] * self._states][: self._states]
        by_rows = [
            None if g is None else self._rows(g, self._output_axes[i], self._output_backwards[i])
            for i, g in enumerate(grads[self._states :])
        ]
        by_captured: list[Any] = [None] * (len(fwd_inputs) - self._own)
        by_entries: list[list[Any]] = []
        for i in reversed(range(len(runs))):
            rows = [None if g is None else g[i] for g in by_rows]
            by_inputs, again = self._body.differentiate(runs[i], [*by_states, *rows])
            by_states = by_inputs[: self._states]
            by_entries.insert(0, by_inputs[self._states :])
            by_captured = [added(a, b) for a, b in zip(by_captured, again, strict=True)]
        scanned = fwd_inputs[self._states : self._own]
        by_scanned = [self._put_together(k, np.asarray(x), by_entries) for k, x in enumerate(scanned)]
        return (*by_states, *by_scanned, *by_captured)

    def _rows(self, x: Any, axis: int, is_backwards: int) -> Array:
        """Return a tensor whose first axis holds what each run is given."""
        moved = np.moveaxis(np.asarray(x), axis, 0)
        return moved[::-1] if is_backwards else moved

    def _put_together(self, index: int, x: Array, by_entries: list[list[Any]]) -> OptionalArray:
        """Return the gradient by a scanned input from those by its entries."""
        if all(entries[index] is None for entries in by_entries):
            return None
        result = np.zeros(x.shape, x.dtype)
        rows = self._rows(result, self._axes[index], self._backwards[index])  # a view
        for row, entries in zip(rows, by_entries, strict=True):
            if entries[index] is not None:
                row[...] = entries[index]
        return result

    def _run(self, inputs: Sequence[Any]) -> tuple[list[dict[str, Any]], list[Any]]:
        """Return the values of every run, and the last states."""
        states = list(inputs[: self._states])
        entries = [
            self._rows(x, axis, is_backwards)
            for x, axis, is_backwards in zip(inputs[self._states : self._own], self._axes, self._backwards, strict=True)
        ]
        sizes = {rows.shape[0] for rows in entries}
        if len(sizes) > 1:
            raise OperatorError(f"Scan: received tensors of {sorted(sizes)} entries; accepted is one number of them.")
        runs = []
        for i in range(sizes.pop()):
            values = self._body.run([*states, *(rows[i] for rows in entries)], inputs[self._own :])
            runs.append(values)
            states = self._body.results(values)[: self._states]
        return runs, states


def _stacked(rows: list[Any], node: OperatorNode, index: int, axis: int) -> Any:
    """Return the results of all runs in one tensor; without any run, what is known of it says its shape."""
    if rows:
        return np.stack(rows, axis=axis)
    known = node.output_types[index] if index < len(node.output_types) else None
    if known is None or known.shape is None:
        return np.zeros((0,), np.float32 if known is None else known.dtype)
    sizes = [size if isinstance(size, int) else 0 for size in known.shape]
    sizes[axis] = 0
    return np.zeros(sizes, known.dtype)


@lowerings.register("If", since=1)
def lower_if(node: OperatorNode) -> Operator:
    """Source: ONNX If-25."""
    return _If(node)


@lowerings.register("Loop", since=1)
def lower_loop(node: OperatorNode) -> Operator:
    """Source: ONNX Loop-25."""
    return _Loop(node)


@lowerings.register("Scan", since=9)
def lower_scan(node: OperatorNode) -> Operator:
    """Source: ONNX Scan-25."""
    return _Scan(node)
