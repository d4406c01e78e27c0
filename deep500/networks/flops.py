"""Floating-point operations of one inference.

Operators count what the rules in :mod:`deep500.networks.flop_rules` say; an operator that neither reads nor writes a
floating tensor counts 0. An operator for which there is no rule is never taken for free: it is reported by name.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import onnx_ir as ir
import onnx_ir.passes.common as passes

from deep500.core.errors import InvalidInputError, InvalidNetworkError, UnsupportedOperatorError
from deep500.core.tensor_descriptor import Dimension, TensorDescriptor
from deep500.networks.flop_rules import flop_rules
from deep500.networks.operator_node import OperatorNode, describe_value, held_graphs, read_node
from deep500.networks.symbolic_sizes import checked_sizes
from deep500.networks.training_form import Mode, node_in_mode

if TYPE_CHECKING:
    from deep500.networks.network import Network

__all__ = ["FlopCount", "count_flops", "network_flops", "node_flops"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FlopCount:
    """The floating-point operations of a network.

    Attributes:
        batch_size: The number of samples that they are counted for.
        nodes: The nodes in the network's order, in evaluation form, with every size that could be told.
        flops: For each of the nodes its operations, ``None`` where there is no rule for its operator, or a size that
            matters is not known.
        obstacles: Why the operations of a node are not known although there is a rule, by the node's index.
    """

    batch_size: int
    nodes: tuple[OperatorNode, ...]
    flops: tuple[int | None, ...]
    obstacles: Mapping[int, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Sum over the nodes that were counted."""
        return sum(count for count in self.flops if count is not None)

    @property
    def uncounted(self) -> Mapping[str, int]:
        """Number of nodes by operator (``"ai.onnx::Resize"``) for operators without a rule."""
        return Counter(
            f"{node.domain or 'ai.onnx'}::{node.op_type}"
            for index, (node, count) in enumerate(zip(self.nodes, self.flops))
            if count is None and index not in self.obstacles
        )


def network_flops(network: Network, batch_size: int = 1) -> int:
    """Return the floating-point operations of one inference, losses included.

    Operators without a rule are left out and named in a logged warning; :func:`count_flops` returns them.

    Args:
        network: The network; its mode does not matter.
        batch_size: Number of samples; see :func:`count_flops`.

    Raises:
        InvalidInputError: As :func:`count_flops`.
        InvalidNetworkError: As :func:`count_flops`.
    """
    count = count_flops(network, batch_size)
    if count.uncounted:
        _logger.warning(
            "The floating-point operations of network %r are a lower bound: there is no rule for %s.",
            network.name,
            ", ".join(count.uncounted),
        )
    return count.total


def count_flops(
    network: Network, batch_size: int = 1, *, sizes: Mapping[str, int] | None = None, partial: bool = False
) -> FlopCount:
    """Count the floating-point operations of every node.

    Args:
        network: The network; its mode does not matter.
        batch_size: Size of the batch, which is the first dimension of the first input where that is symbolic. A
            network of a fixed batch size is counted for that.
        sizes: Further symbolic sizes by their names, such as ``{"length": 128}``.
        partial: Whether nodes whose operations depend on a size that is not known are left out
            (:attr:`FlopCount.obstacles`) instead of refused.

    Raises:
        InvalidInputError: The batch size is no number from 1, or another than the network's fixed one.
        InvalidNetworkError: A node's operations depend on another symbolic size; the message names it.
        UnknownNameError: No input has a size of a name that was given.
    """
    bound, counted_for = _bind_sizes(network, batch_size, checked_sizes(network, sizes))
    graph = bound.graph
    nodes = tuple(node_in_mode(read_node(node, graph.opset_imports), Mode.EVAL, frozenset())[0] for node in graph)
    flops: list[int | None] = []
    obstacles: dict[int, str] = {}
    for index, node in enumerate(nodes):
        try:
            flops.append(node_flops(node))
        except InvalidNetworkError as error:
            if not partial:
                raise
            obstacles[index] = str(error)
            flops.append(None)
    return FlopCount(counted_for, nodes, tuple(flops), obstacles)


def node_flops(node: OperatorNode) -> int | None:
    """Return the floating-point operations of one node, ``None`` when there is no rule for its operator.

    Args:
        node: A node whose sizes are known.

    Raises:
        InvalidNetworkError: A size that matters is symbolic or unknown.
    """
    types = [t for t in (*node.input_types, *node.output_types) if t is not None]
    if types and not any(_is_floating(t) for t in types):
        return 0
    try:
        rule = flop_rules.find(node)
    except UnsupportedOperatorError:
        return None
    return int(rule(node))


def _is_floating(descriptor: TensorDescriptor) -> bool:
    return descriptor.dtype.startswith(("float", "bfloat", "complex"))


def _bind_sizes(network: Network, batch_size: int, sizes: Mapping[str, int]) -> tuple[ir.Model, int]:
    """Return a copy of the model (the weights are shared) with the batch size and others in every shape."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InvalidInputError(f"batch_size was given as {batch_size!r}; accepted are whole numbers from 1.")
    model = network.model.clone()
    inputs = [value for value in model.graph.inputs if value.name in network.inputs]
    batch = _first_dimension(inputs[0]) if inputs else 1
    if isinstance(batch, str) and batch in sizes:
        if batch_size not in (1, sizes[batch]):
            raise InvalidInputError(
                f"batch_size was given as {batch_size}, and {batch!r}, the batch, as {sizes[batch]}."
            )
        batch_size = sizes[batch]
    if isinstance(batch, int) and batch_size not in (1, batch):
        raise InvalidInputError(
            f"batch_size was given as {batch_size}; network {network.name!r} has the fixed batch size {batch}."
        )
    if isinstance(batch, int) and not sizes:
        return model, batch
    for value in inputs:
        for name, size in sizes.items():
            _replace_size(value, name, size)
    if not isinstance(batch, int):
        _bind_batch(model, inputs, batch, batch_size)
    for value in _inner_values(model.graph):
        for name, size in sizes.items():
            _replace_size(value, name, size)
    # Sizes that follow from the batch ("batch * 49") are inferred; nodes that contradict it keep what they had.
    inferred = passes.ShapeInferencePass(strict_mode=False)(model).model
    return inferred, batch if isinstance(batch, int) else batch_size


def _bind_batch(model: ir.Model, inputs: Sequence[ir.Value], batch: str | None, size: int) -> None:
    for value in _inner_values(model.graph):
        _replace_size(value, batch, size)
    for value in inputs:
        # Where the batch has no name, it is the first dimension of the other inputs as well.
        _replace_size(value, batch, size, unnamed_first=batch is None)


def _inner_values(graph: ir.Graph) -> Iterator[ir.Value]:
    """Yield what the nodes of a graph compute, and the inputs and values of the graphs that they hold."""
    for node in graph:
        yield from node.outputs
        for _, inner in held_graphs(node):
            yield from inner.inputs
            yield from _inner_values(inner)


def _replace_size(value: ir.Value, symbol: str | None, size: int, *, unnamed_first: bool = False) -> None:
    if value.shape is None:
        return
    dimensions = [d if isinstance(d, int) else d.value for d in value.shape]
    if symbol is not None:
        dimensions = [size if d == symbol else d for d in dimensions]
    elif unnamed_first and dimensions and dimensions[0] is None:
        dimensions[0] = size
    value.shape = ir.Shape(dimensions)


def _first_dimension(value: ir.Value) -> Dimension:
    descriptor = describe_value(value)
    return descriptor.shape[0] if descriptor is not None and descriptor.shape else 1
