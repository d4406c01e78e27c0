"""The equivalence ladder: several executors on the same inputs, compared from the whole network down to single nodes.

1. The whole network: outputs, losses, and the gradients by all parameters.
2. Every tensor between: where two runs part.
3. Every node alone, given the reference's values: its outputs, and the gradients of a weighted sum of them by its
   inputs. Errors of nodes before it cannot reach it, so the first node that differs here is the one to look at.

What is allowed follows from the dtype and from the length of reductions (:mod:`deep500.measure.tolerance`): of a node
its own, of the whole network all that lie on the way. A gradient that is zero but for rounding, such as that by the
bias of attention's keys, which softmax does not see, is measured by the largest gradient beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from deep500.core.errors import Deep500Error, InvalidInputError, InvalidNetworkError, UnsupportedOperatorError
from deep500.core.texts import message_of, shown
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode
from deep500.networks.random_inputs import random_inputs
from deep500.networks.validation._comparing import compare_tensors, largest
from deep500.networks.validation._single_node import (
    LOSS,
    draws_numbers,
    is_floating,
    node_network,
    reduction_length,
    with_intermediates,
)
from deep500.networks.validation.report import NodeComparison, TensorComparison, ValidationReport

__all__ = ["ExecutorFactory", "validate"]

#: ``from_model`` of an adapter, or anything that makes an executor of a network.
ExecutorFactory: TypeAlias = Callable[[Network], GraphExecutor]

#: Operators whose outputs are sums of products: terms may cancel, so that their sizes count, not the sum's.
_SUMS = frozenset(
    (
        *("Add", "Attention", "AveragePool", "Conv", "ConvTranspose", "CumSum", "DFT", "Einsum", "Gemm"),
        *("GlobalAveragePool", "MatMul", "ReduceMean", "ReduceSum", "Sub", "Sum"),
    )
)


def validate(
    network: Network,
    executors: Sequence[ExecutorFactory],
    inputs: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    loss: str | None = None,
    tolerance: float | None = None,
    alone: bool = True,
    seed: int = 0,
    tell: Callable[[str], None] | None = None,
) -> ValidationReport:
    """Run several executors on the same inputs, compare all that they compute, and name the first node that differs.

    Args:
        network: The network, in the mode in which it is to be compared; it is not changed.
        executors: Two or more; the first is the reference. Such as ``deep500.frameworks.pytorch.from_model``.
        inputs: A value for every input; random ones by default.
        sizes: Sizes of the random inputs, by symbol.
        loss: Name of the scalar output that is differentiated; by default the network's loss where it has one.
        tolerance: What is allowed of the outputs of the whole network relative to their largest value, in place of what
            follows from their dtype and the reductions.
        alone: Whether every node is run alone.
        seed: Seed of random inputs.
        tell: Is told what is being done, a few words each time.

    Raises:
        InvalidInputError: There are fewer than two executors, or the inputs are not the network's.
        Deep500Error: The reference cannot run the network.
    """
    if not isinstance(network, Network):
        raise InvalidInputError(f"validate was given {shown(network)}; accepted is a Network (Network.load reads one).")
    if not isinstance(executors, (list, tuple)) or len(executors) < 2 or not all(map(callable, executors)):
        raise InvalidInputError(
            f"validate was given the executors {shown(executors)}; accepted is a list of two or more functions that "
            f"make one of a network, such as [reference.from_model, pytorch.from_model]."
        )
    if tolerance is not None and not _is_share(tolerance):
        raise InvalidInputError(f"tolerance was given as {shown(tolerance)}; accepted are numbers from 0.")
    feeds = dict(random_inputs(network, sizes, seed) if inputs is None else inputs)
    loss = next(iter(network.losses), None) if loss is None else loss
    return _Ladder(network, executors, feeds, loss, tolerance, seed, tell or (lambda text: None)).climb(alone=alone)


def _is_share(value: Any) -> bool:
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return bool(is_number and 0 <= value < np.inf)


@dataclass
class _Ladder:
    """A comparison in progress."""

    network: Network
    executors: Sequence[ExecutorFactory]
    feeds: Mapping[str, Any]
    loss: str | None
    tolerance: float | None
    seed: int
    tell: Callable[[str], None]
    labels: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def climb(self, *, alone: bool) -> ValidationReport:
        probed = with_intermediates(self.network)
        program = self.network.program(frozenset(self.feeds))
        self.tell("the whole network")
        whole = self._whole(probed)
        values = self._known(whole[self.labels[0]])
        lengths = _accumulated(program.nodes, values)
        outputs, between = self._compared(whole, lengths, [*program.outputs])
        nodes = self._nodes(program.nodes, values) if alone else []
        drawing = [node.name for node in program.nodes if draws_numbers(node)]
        if drawing:
            self.notes.append(f"{', '.join(drawing)} draw numbers, so that runs of the whole network differ anyway.")
        return ValidationReport(
            self.network.name,
            self.labels[0],
            tuple(self.labels[1:]),
            tuple(outputs),
            tuple(between),
            tuple(nodes),
            tuple(self.failures.items()),
            tuple(self.notes),
        )

    def _whole(self, probed: Network) -> dict[str, dict[str, Any]]:
        """Return outputs, intermediate tensors and gradients of every executor."""
        results: dict[str, dict[str, Any]] = {}
        for index, factory in enumerate(self.executors):
            executor = factory(probed)
            label = executor.framework
            if label in self.labels:
                label = f"{label} ({index + 1})"
            self.labels.append(label)
            try:
                results[label] = self._run(executor)
            except Deep500Error as error:
                if index == 0:
                    raise
                self.failures[label] = message_of(error)
        return results

    def _run(self, executor: GraphExecutor) -> dict[str, Any]:
        if self.loss is None:
            found = executor.inference(self.feeds)
        else:
            found = executor.inference_and_backprop(self.feeds, self.loss)
        results = {name: executor.value_to_numpy(value) for name, value in found.items()}
        if self.loss is not None:
            for parameter, gradient in executor.network.gradient(self.loss):
                results[f"gradient of {parameter!r}"] = executor.network.fetch_tensors([gradient])[0]
        return results

    def _known(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reference's values by name, those that are fed and stored among them."""
        stored = [*self.network.parameters, *self.network.states, *self.network.constants]
        known = dict(zip(stored, self.network.fetch_tensors(stored)))
        return {**known, **{name: np.asarray(x) for name, x in self.feeds.items() if _is_tensor(x)}, **results}

    def _compared(
        self, whole: Mapping[str, Mapping[str, Any]], lengths: Mapping[str, int], outputs: Sequence[str]
    ) -> tuple[list[TensorComparison], list[TensorComparison]]:
        position = {name: index for index, name in enumerate(lengths)}
        found = whole[self.labels[0]]
        expected = {name: found[name] for name in sorted(found, key=lambda name: position.get(name, len(position)))}
        total = max(lengths.values(), default=16)
        steepest = max((largest(value) for name, value in expected.items() if _is_gradient(name)), default=0.0)
        rows: list[TensorComparison] = []
        between: list[TensorComparison] = []
        for label in self.labels[1:]:
            for name, value in expected.items() if label in whole else ():
                is_gradient = _is_gradient(name)
                what = name if is_gradient else f"output {name!r}" if name in outputs else f"tensor {name!r}"
                length = 2 * total if is_gradient else lengths.get(name, total)
                row = compare_tensors(
                    label,
                    what,
                    whole[label].get(name),
                    value,
                    length=length,
                    relative=self.tolerance,
                    among=steepest if is_gradient else 0.0,
                )
                if is_gradient or name in outputs:
                    rows.append(row)
                if not is_gradient:
                    between.append(row)
        return rows, between

    def _nodes(self, nodes: Sequence[OperatorNode], values: Mapping[str, Any]) -> list[NodeComparison]:
        rows = []
        for index, node in enumerate(nodes):
            self.tell(f"node {index + 1} of {len(nodes)}: {node.name}")
            rows += self._node(index, node, values)
        return rows

    def _node(self, index: int, node: OperatorNode, values: Mapping[str, Any]) -> list[NodeComparison]:
        about = (node.name, node.op_type, index)
        if draws_numbers(node):
            return [NodeComparison(label, *about, note="it draws numbers") for label in self.labels[1:]]
        try:
            expected = self._alone(self.executors[0], node, values)
        except Deep500Error as error:
            note = f"{self.labels[0]} cannot run it alone: {message_of(error)}"
            return [NodeComparison(label, *about, note=note) for label in self.labels[1:]]
        bounds = self._bounds(node, values, expected)
        rows = []
        for label, factory in zip(self.labels[1:], self.executors[1:], strict=True):
            if label in self.failures:
                continue
            try:
                found = self._alone(factory, node, values)
            except UnsupportedOperatorError as error:
                rows.append(NodeComparison(label, *about, note=message_of(error)))
                continue
            except Deep500Error as error:
                problem = TensorComparison(label, "the node", problem=message_of(error))
                rows.append(NodeComparison(label, *about, (problem,)))
                continue
            tensors = [
                compare_tensors(label, name, found[name], value, **bounds[name])
                for name, value in expected.items()
                if name in found
            ]
            rows.append(NodeComparison(label, *about, tuple(tensors)))
        return rows

    def _bounds(
        self, node: OperatorNode, values: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Return by what each output and gradient of a node is measured, as arguments of ``compare_tensors``."""
        length = reduction_length(node, values)
        longest = max([length, *(values[n].size for n in node.inputs if _is_tensor(values.get(n)))])
        scale = self._scale(node, values)
        steepest = max([scale, *(largest(value) for name, value in expected.items() if _is_gradient(name))])
        # Of a gradient the terms are products of the loss's weights, of about 1, and of inputs.
        return {
            name: {"length": longest, "scale": max(largest(value), 1.0), "among": steepest}
            if _is_gradient(name)
            else {"length": length, "scale": scale}
            for name, value in expected.items()
        }

    def _alone(self, factory: ExecutorFactory, node: OperatorNode, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return outputs and gradients of one node."""
        network, feeds = node_network(self.network, node, values)
        executor = factory(network)
        results = executor.inference(feeds)
        found = {f"output {name!r}": executor.value_to_numpy(results[name]) for name in network.outputs}
        if any(is_floating(values.get(name)) for name in node.inputs):
            found.update(self._gradients(factory, node, values))
        return found

    def _gradients(self, factory: ExecutorFactory, node: OperatorNode, values: Mapping[str, Any]) -> dict[str, Any]:
        try:
            network, feeds = node_network(self.network, node, values, self.seed)
            executor = factory(network)
            executor.inference_and_backprop(feeds, LOSS)
        except (UnsupportedOperatorError, InvalidNetworkError):
            return {}  # without a derivative here; the outputs are compared
        pairs = executor.network.gradient(LOSS)
        return {f"gradient by {name!r}": executor.network.fetch_tensors([gradient])[0] for name, gradient in pairs}

    def _scale(self, node: OperatorNode, values: Mapping[str, Any]) -> float:
        """Return the size of what a node sums up."""
        sizes = [largest(values.get(name)) for name in (*node.inputs, *node.outputs)]
        if node.op_type not in _SUMS or node.domain:
            return max(sizes, default=0.0)
        positive = {
            name: np.abs(value) if is_floating(value) and name in node.inputs else value
            for name, value in values.items()
        }
        network, feeds = node_network(self.network, node, positive)
        for name in network.parameters:
            network.feed_tensor(name, positive[name])
        executor = self.executors[0](network)
        results = executor.inference(feeds)
        return max([*sizes, *(largest(executor.value_to_numpy(value)) for value in results.values())])


def _accumulated(nodes: Sequence[OperatorNode], values: Mapping[str, Any]) -> dict[str, int]:
    """Return the lengths of all reductions on the longest way to every tensor, by its name."""
    lengths: dict[str, int] = {}
    for node in nodes:
        before = max((lengths.get(name, 0) for name in (*node.inputs, *node.captured)), default=0)
        lengths.update(dict.fromkeys(filter(None, node.outputs), before + reduction_length(node, values)))
    return lengths


def _is_gradient(name: str) -> bool:
    return name.startswith(("gradient of ", "gradient by "))


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")
