"""Branches and loops: their graphs become modules of their own, which a module of PyTorch calls when it runs."""

from __future__ import annotations

from typing import Any

import torch

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.frameworks.pytorch._recording import call_each_run, spread
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._graphs import GraphHolder, HeldGraph, stacked, unstacked
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


class _If(GraphHolder):
    """Runs one of two branches; where it is known which, the other one is not even translated."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__(node)
        known = node.constants.get(0)
        self.always = None if known is None else bool(known.reshape(()))
        self.then_branch = None if self.always is False else HeldGraph(node.graphs["then_branch"])
        self.else_branch = None if self.always is True else HeldGraph(node.graphs["else_branch"])

    def forward(self, condition: torch.Tensor, *captured: Any) -> tuple[Any, ...]:
        is_true = bool(condition.reshape(())) if self.always is None else self.always
        branch = self.then_branch if is_true else self.else_branch
        assert branch is not None
        results: tuple[Any, ...] = branch((), self._captured(captured))
        return results


class _Loop(GraphHolder):
    """Runs a body while its condition holds, at most a number of times."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__(node)
        self.body = HeldGraph(node.graphs["body"])
        self.carried_count = len(node.inputs) - 2
        self.scanned_types = _entry_types(node, self.carried_count, self.body.output_types[1 + self.carried_count :])

    def forward(self, limit: Any, condition: Any, *values: Any) -> tuple[Any, ...]:
        carried, captured = values[: self.carried_count], self._captured(values[self.carried_count :])
        most = None if limit is None else int(limit)
        device = self.place.device
        scanned: list[list[Any]] = [[] for _ in self.scanned_types]
        going, iteration = condition is None or bool(condition.reshape(())), 0
        while going and (most is None or iteration < most):
            number, still = torch.tensor(iteration, device=device), torch.tensor(True, device=device)
            proceed, *results = self.body((number, still, *carried), captured)
            carried = tuple(results[: self.carried_count])
            for column, value in zip(scanned, results[self.carried_count :], strict=True):
                column.append(value)
            # With a limit alone, the body's condition is ignored; with neither, nothing else could end the loop.
            ignores = condition is None and most is not None
            going, iteration = ignores or bool(proceed.reshape(())), iteration + 1
        return (*carried, *(stacked(column, kind, 0, device) for column, kind in zip(scanned, self.scanned_types)))


class _Scan(GraphHolder):
    """Runs a body for every slice of some tensors."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__(node)
        self.body = HeldGraph(node.graphs["body"])
        self.scan_count = int(node.attributes["num_scan_inputs"])
        self.state_count = len(node.inputs) - self.scan_count
        types = self.body.output_types[self.state_count :]
        self.input_axes = node.attributes.get("scan_input_axes") or [0] * self.scan_count
        self.input_directions = node.attributes.get("scan_input_directions") or [0] * self.scan_count
        self.output_axes = node.attributes.get("scan_output_axes") or [0] * len(types)
        self.output_directions = node.attributes.get("scan_output_directions") or [0] * len(types)
        self.scanned_types = _entry_types(node, self.state_count, types, self.output_axes)

    def forward(self, *values: Any) -> tuple[Any, ...]:
        inputs = self.state_count + self.scan_count
        states, captured = values[: self.state_count], self._captured(values[inputs:])
        slices = [
            unstacked(x, axis)[::-1] if direction else unstacked(x, axis)
            for x, axis, direction in zip(values[self.state_count : inputs], self.input_axes, self.input_directions)
        ]
        scanned: list[list[Any]] = [[] for _ in self.output_axes]
        for row in zip(*slices, strict=True):
            results = self.body((*states, *row), captured)
            states = results[: self.state_count]
            for column, value in zip(scanned, results[self.state_count :], strict=True):
                column.append(value)
        columns = zip(scanned, self.scanned_types, self.output_axes, self.output_directions, strict=True)
        stacks = [
            stacked(column[::-1] if direction else column, kind, axis, self.place.device)
            for column, kind, axis, direction in columns
        ]
        return (*states, *stacks)


def _entry_types(
    node: OperatorNode, first: int, inner: list[TensorDescriptor | None], axes: list[int] | None = None
) -> list[TensorDescriptor | None]:
    """Return what is known of one entry of every stacked output: from the body, or else from the output itself."""
    types = []
    for index, kind in enumerate(inner):
        outer = node.output_types[first + index] if first + index < len(node.output_types) else None
        if outer is not None and outer.shape and (kind is None or kind.shape is None):
            axis = axes[index] % len(outer.shape) if axes else 0
            kind = TensorDescriptor(outer.dtype, outer.shape[:axis] + outer.shape[axis + 1 :])
        types.append(kind or outer)
    return types


@lowerings.register("If", since=11)
def if_else(node: OperatorNode, condition: torch.Tensor, *captured: Any) -> tuple[Any, ...]:
    """The outputs of one of two branches. Source: ONNX If-25."""
    return spread(call_each_run(_If(node), (condition, *captured)), len(node.outputs))


@lowerings.register("Loop", since=11)
def loop(node: OperatorNode, *values: Any) -> tuple[Any, ...]:
    """The last values of what a body hands on, and what it gave in each round, stacked. Source: ONNX Loop-25."""
    return spread(call_each_run(_Loop(node), values), len(node.outputs))


@lowerings.register("Scan", since=9)
def scan(node: OperatorNode, *values: Any) -> tuple[Any, ...]:
    """The last states of a body that was run for every slice, and what it gave for each. Source: ONNX Scan-25."""
    return spread(call_each_run(_Scan(node), values), len(node.outputs))
