"""Floating-point operations of one inference.

Operators count what the rules in :mod:`deep500.networks.flop_rules` say; an operator that neither reads nor writes a
floating tensor counts 0. An operator for which there is no rule is never taken for free: it is reported by name.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir
import onnx_ir.passes.common as passes

from deep500.core.errors import InvalidInputError, UnsupportedOperatorError
from deep500.core.tensor_descriptor import Dimension, TensorDescriptor
from deep500.networks.flop_rules import flop_rules
from deep500.networks.operator_node import OperatorNode, describe_value, read_node
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
        flops: For each of the nodes its operations, ``None`` where there is no rule for its operator.
    """

    batch_size: int
    nodes: tuple[OperatorNode, ...]
    flops: tuple[int | None, ...]

    @property
    def total(self) -> int:
        """Sum over the nodes that were counted."""
        return sum(count for count in self.flops if count is not None)

    @property
    def uncounted(self) -> Mapping[str, int]:
        """Number of nodes by operator (``"ai.onnx::Resize"``) for operators without a rule."""
        return Counter(
            f"{node.domain or 'ai.onnx'}::{node.op_type}"
            for node, count in zip(self.nodes, self.flops)
            if count is None
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


def count_flops(network: Network, batch_size: int = 1) -> FlopCount:
    """Count the floating-point operations of every node.

    Args:
        network: The network; its mode does not matter.
        batch_size: Size of the batch, which is the first dimension of the first input where that is symbolic. A
            network of a fixed batch size is counted for that.

    Raises:
        InvalidInputError: The batch size is no number from 1, or another than the network's fixed one.
        InvalidNetworkError: A node's operations depend on another symbolic size; the message names it.
    """
    bound, counted_for = _bind_batch(network, batch_size)
    graph = bound.graph
    nodes = []
    for node in graph:
        nodes.append(node_in_mode(read_node(node, graph.opset_imports), Mode.EVAL, frozenset())[0])
    return FlopCount(counted_for, tuple(nodes), tuple(node_flops(node) for node in nodes))


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


def _bind_batch(network: Network, batch_size: int) -> tuple[ir.Model, int]:
    """Return a copy of the model (the weights are shared) with the batch size in every shape."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InvalidInputError(f"batch_size was given as {batch_size!r}; accepted are whole numbers from 1.")
    model = network.model.clone()
    inputs = [value for value in model.graph.inputs if value.name in network.inputs]
    batch = _first_dimension(inputs[0]) if inputs else 1
    if isinstance(batch, int):
        if batch_size not in (1, batch):
            raise InvalidInputError(
                f"batch_size was given as {batch_size}; network {network.name!r} has the fixed batch size {batch}."
            )
        return model, batch
    for value in (v for node in model.graph for v in node.outputs):
        _replace_size(value, batch, batch_size)
    for value in inputs:
        # Where the batch has no name, it is the first dimension of the other inputs as well.
        _replace_size(value, batch, batch_size, unnamed_first=batch is None)
    # Sizes that follow from the batch ("batch * 49") are inferred; nodes that contradict it keep what they had.
    return passes.ShapeInferencePass(strict_mode=False)(model).model, batch_size


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
