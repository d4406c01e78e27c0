"""Branches and loops: their graphs become modules of their own, which a module of PyTorch calls when it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.frameworks.pytorch._dtypes import torch_dtype
from deep500.frameworks.pytorch._recording import call_module, spread
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.translation import translate_subprogram
from deep500.networks.operator_node import OperatorNode, Subprogram

__all__: list[str] = []


class _Graph(torch.nn.Module):
    """A graph that a node holds, called with its own inputs and all that the node captures, by name."""

    def __init__(self, program: Subprogram) -> None:
        super().__init__()
        self.module = translate_subprogram(program)
        self.captured = program.captured
        self.output_count = len(program.outputs)

    def forward(self, inputs: Sequence[Any], captured: Mapping[str, Any]) -> tuple[Any, ...]:
        results: tuple[Any, ...] = self.module(*inputs, *(captured[name] for name in self.captured))
        return results


class _If(torch.nn.Module):
    """Runs one of two branches."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__()
        self.names = node.captured
        self.then_branch = _Graph(node.graphs["then_branch"])
        self.else_branch = _Graph(node.graphs["else_branch"])

    def forward(self, condition: torch.Tensor, *captured: Any) -> tuple[Any, ...]:
        branch = self.then_branch if bool(condition.reshape(())) else self.else_branch
        results: tuple[Any, ...] = branch((), dict(zip(self.names, captured)))
        return results


class _Loop(torch.nn.Module):
    """Runs a body while its condition holds, at most a number of times."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__()
        self.names = node.captured
        self.body = _Graph(node.graphs["body"])
        self.carried_count = len(node.inputs) - 2
        self.scanned_types = _padded(node, self.body.output_count - 1)[self.carried_count :]

    def forward(self, limit: Any, condition: Any, *values: Any) -> tuple[Any, ...]:
        carried, captured = values[: self.carried_count], dict(zip(self.names, values[self.carried_count :]))
        most = None if limit is None else int(limit)
        scanned: list[list[torch.Tensor]] = [[] for _ in self.scanned_types]
        going, iteration = condition is None or bool(condition.reshape(())), 0
        while going and (most is None or iteration < most):
            number, still = torch.tensor(iteration), torch.tensor(True)
            proceed, *results = self.body((number, still, *carried), captured)
            carried = tuple(results[: self.carried_count])
            for column, value in zip(scanned, results[self.carried_count :]):
                column.append(value)
            going, iteration = bool(proceed.reshape(())), iteration + 1
        return (*carried, *(_stacked(column, kind) for column, kind in zip(scanned, self.scanned_types)))


class _Scan(torch.nn.Module):
    """Runs a body for every slice of some tensors."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__()
        self.names = node.captured
        self.body = _Graph(node.graphs["body"])
        self.scan_count = int(node.attributes["num_scan_inputs"])
        self.state_count = len(node.inputs) - self.scan_count
        outputs = self.body.output_count - self.state_count
        self.input_axes = node.attributes.get("scan_input_axes") or [0] * self.scan_count
        self.input_directions = node.attributes.get("scan_input_directions") or [0] * self.scan_count
        self.output_axes = node.attributes.get("scan_output_axes") or [0] * outputs
        self.output_directions = node.attributes.get("scan_output_directions") or [0] * outputs
        self.scanned_types = _padded(node, self.body.output_count)[self.state_count :]

    def forward(self, *values: Any) -> tuple[Any, ...]:
        inputs = self.state_count + self.scan_count
        states, captured = values[: self.state_count], dict(zip(self.names, values[inputs:]))
        slices = [
            list(reversed(x.unbind(axis))) if direction else list(x.unbind(axis))
            for x, axis, direction in zip(values[self.state_count : inputs], self.input_axes, self.input_directions)
        ]
        scanned: list[list[torch.Tensor]] = [[] for _ in self.output_axes]
        for row in zip(*slices):
            results = self.body((*states, *row), captured)
            states = results[: self.state_count]
            for column, value in zip(scanned, results[self.state_count :]):
                column.append(value)
        stacked = [
            _stacked(column[::-1] if direction else column, kind, axis)
            for column, kind, axis, direction in zip(
                scanned, self.scanned_types, self.output_axes, self.output_directions
            )
        ]
        return (*states, *stacked)


def _padded(node: OperatorNode, count: int) -> list[TensorDescriptor | None]:
    """Return the types of so many outputs of a node, of which the last ones may not be wanted."""
    return [*node.output_types, *[None] * (count - len(node.output_types))]


def _stacked(values: Sequence[torch.Tensor], kind: TensorDescriptor | None, axis: int = 0) -> torch.Tensor:
    """Return tensors as one along a new axis; of none, an empty tensor of the type that is known."""
    if values:
        return torch.stack(list(values), axis)
    sizes = [] if kind is None or kind.shape is None else [d if isinstance(d, int) else 0 for d in kind.shape]
    if sizes:
        sizes[axis] = 0
    dtype = torch.float32 if kind is None else torch_dtype(kind.dtype)
    return torch.empty(sizes or [0], dtype=dtype)


@lowerings.register("If", since=11)
def if_else(node: OperatorNode, condition: torch.Tensor, *captured: Any) -> tuple[Any, ...]:
    """The outputs of one of two branches."""
    return spread(call_module(_If(node), (condition, *captured)), len(node.outputs))


@lowerings.register("Loop", since=11)
def loop(node: OperatorNode, *values: Any) -> tuple[Any, ...]:
    """The last values of what a body hands on, and what it gave in each round, stacked."""
    return spread(call_module(_Loop(node), values), len(node.outputs))


@lowerings.register("Scan", since=9)
def scan(node: OperatorNode, *values: Any) -> tuple[Any, ...]:
    """The last states of a body that was run for every slice, and what it gave for each, stacked."""
    return spread(call_module(_Scan(node), values), len(node.outputs))
