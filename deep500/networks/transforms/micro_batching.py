"""Dividing the batch of single layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.measure.clock import Stopwatch
from deep500.networks.batch_separability import is_samplewise
from deep500.networks.flops import count_flops, node_flops
from deep500.networks.micro_batch_plan import CALL_FLOPS, Layer, candidate_sizes, choose_sizes, workspace_bytes
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode, read_node
from deep500.networks.tensor_roles import TensorRole
from deep500.networks.transformation import Transformation
from deep500.networks.transforms._graphs import add_stored, replace_nodes, unused_name
from deep500.networks.validation._single_node import node_network
from deep500.networks.validation.ladder import ExecutorFactory

__all__ = ["MicroBatching"]


class MicroBatching(Transformation):
    """Run single layers on parts of the batch (Split, the layer for every part, Concat), within a bound of memory.

    The sizes of the parts are those that take the least time, by an integer program over all layers
    (:mod:`deep500.networks.micro_batch_plan`). Counted are stored tensors, the tensors that are alive while a layer
    runs, its workspace, and the second copy of a result that is joined. This bounds workspaces; what training keeps
    between both directions only becomes less where the whole network runs in parts:
    :class:`~deep500.networks.micro_batched_executor.MicroBatchedExecutor`.

    Source: Y. Oyama et al., "Accelerating deep learning frameworks with micro-batches", CLUSTER 2018.
    """

    def __init__(
        self,
        batch_size: int,
        memory_bound: int,
        *,
        operators: Sequence[str] = ("Conv", "ConvTranspose", "Gemm", "MatMul"),
        executor: ExecutorFactory | None = None,
    ) -> None:
        """Choose batch and bound.

        Args:
            batch_size: The batch size of the new network, which is fixed.
            memory_bound: Most bytes in use at one time during inference.
            operators: Operators that may be divided.
            executor: Measures the time of every layer and size; by default it follows from the operations.

        Raises:
            InvalidInputError: An argument is not accepted.
        """
        self.batch_size = check_count("batch_size", batch_size, least=1)
        self.memory_bound = check_count("memory_bound", memory_bound, least=1)
        if isinstance(operators, str):
            raise InvalidInputError(
                f"operators was given as {operators!r}; accepted is a list such as [{operators!r}]."
            )
        self.operators, self.executor = tuple(operators), executor

    def sizes(self, network: Network) -> Mapping[str, int]:
        """Return the batch size by its name."""
        return {_symbol(network): self.batch_size}

    def check(self, network: Network) -> None:
        """Refuse fixed batch sizes, networks without a layer that can be divided, and bounds that are too small."""
        _symbol(network)
        if not any(self._divisible(node, network) for node in _nodes(network)):
            raise InvalidInputError(
                f"Network {network.name!r} has no node that can be divided along the batch, among "
                f"{', '.join(self.operators)}."
            )

    def plan(self, network: Network) -> dict[str, list[int]]:
        """Return the sizes of the parts of every layer that may be divided, by the name of its first output.

        Raises:
            InvalidInputError: No sizes fit into the memory.
        """
        chosen = {node.outputs[0] for node in _nodes(network) if self._divisible(node, network)}
        layers = self._layers(network, chosen)
        sizes = choose_sizes(layers, self.batch_size, self.memory_bound)
        return {layer.name: parts for layer, parts in zip(layers, sizes) if layer.name in chosen}

    def apply(self, network: Network) -> Network:
        """Return the network with divided layers and a fixed batch size."""
        parts = self.plan(network)
        symbol = _symbol(network)
        result = network.detached()
        graph = result.model.graph
        for node in list(graph):
            sizes = parts.get(node.outputs[0].name or "", [])
            if len(sizes) > 1:
                _divide(graph, node, sizes)
        for value in [*graph.inputs, *(v for node in graph for v in node.outputs)]:
            if value.shape is not None:
                sized = [self.batch_size if str(getattr(d, "value", d)) == symbol else d for d in value.shape]
                value.shape = ir.Shape(sized)
        return result

    def check_result(self, network: Network, result: Network) -> None:
        """Check that inputs, outputs and losses are those of the network, with the batch size put in."""
        symbol = _symbol(network)
        for what in ("inputs", "outputs", "losses"):
            wanted = {name: _sized(kind, symbol, self.batch_size) for name, kind in getattr(network, what).items()}
            if wanted != getattr(result, what):
                raise InvalidNetworkError(f"{self.name} changed the {what} of network {network.name!r}.")
        if network.parameters != result.parameters:
            raise InvalidNetworkError(f"{self.name} changed the parameters of network {network.name!r}.")

    def _divisible(self, node: OperatorNode, network: Network) -> bool:
        kind = node.input_types[0] if node.input_types else None
        if node.op_type not in self.operators or kind is None or not kind.shape or kind.shape[0] != _symbol(network):
            return False
        one_output = not any(node.outputs[1:])
        return one_output and is_samplewise(node, {node.inputs[0]})

    def _layers(self, network: Network, chosen: set[str]) -> list[Layer]:
        """Return every node with what is alive while it runs; those that are not chosen have one size."""
        sizes = candidate_sizes(self.batch_size)
        nodes = {size: count_flops(network, size).nodes for size in sizes}
        whole = nodes[self.batch_size]
        alive = _alive_bytes(network, whole)
        layers = []
        for index, node in enumerate(whole):
            options = sizes if node.outputs[0] in chosen else [self.batch_size]
            needed, times = {}, {}
            for size in options:
                part = nodes[size][index]
                joined = sum((t.size_bytes or 0) for t in node.output_types if t) if size < self.batch_size else 0
                needed[size] = joined + workspace_bytes(part)
                is_choice = len(options) > 1
                times[size] = self._time(network, part) if is_choice else 0.0
            layers.append(Layer(node.outputs[0], alive[index], needed, times))
        return layers

    def _time(self, network: Network, node: OperatorNode) -> float:
        if self.executor is None:
            return float((node_flops(node) or 0) + CALL_FLOPS)
        stream = np.random.default_rng(0)
        stored = {*network.parameters, *network.states, *network.constants}
        values = {}
        for name, kind in (*zip(node.inputs, node.input_types), *zip(node.outputs, node.output_types)):
            if name in stored:
                (values[name],) = network.fetch_tensors([name])
            elif name and kind is not None and kind.is_static:
                shape = [size for size in kind.shape or () if isinstance(size, int)]
                values[name] = stream.standard_normal(shape).astype(kind.numpy_dtype)
        alone, feeds = node_network(network, node, values)
        executor = self.executor(alone)
        executor.inference(feeds)
        seconds = []
        for _ in range(3):
            watch = Stopwatch(executor.synchronize)
            executor.inference(feeds)
            seconds.append(watch.elapsed_s())
        return min(seconds)


def _symbol(network: Network) -> str:
    """Return the name of the batch size."""
    first = next(iter(network.inputs.values()), None)
    size = first.shape[0] if isinstance(first, TensorDescriptor) and first.shape else None
    if not isinstance(size, str):
        raise InvalidNetworkError(
            f"The first dimension of the first input of network {network.name!r} is {size!r}; MicroBatching needs a "
            f"batch size with a name, such as [batch, 3, 32, 32]."
        )
    return size


def _nodes(network: Network) -> list[OperatorNode]:
    graph = network.model.graph
    return [read_node(node, graph.opset_imports) for node in graph]


def _alive_bytes(network: Network, nodes: Sequence[OperatorNode]) -> list[int]:
    """Return for every node the bytes of stored tensors and of all that is computed and still needed."""
    last: dict[str, int] = {}
    for index, node in enumerate(nodes):
        last.update(dict.fromkeys((*node.inputs, *node.captured), index))
    last.update(dict.fromkeys((*network.outputs, *network.losses), len(nodes)))
    kinds = {n: t for node in nodes for n, t in zip(node.inputs, node.input_types)}
    stored = {**network.parameters, **network.states, **network.constants}
    base = sum(d.size_bytes or 0 for d in stored.values())
    living = {n: (kind.size_bytes or 0) if (kind := kinds.get(n)) else 0 for n in network.inputs}
    found = []
    for index, node in enumerate(nodes):
        living.update({n: (t.size_bytes or 0) if t else 0 for n, t in zip(node.outputs, node.output_types) if n})
        found.append(base + sum(living.values()))
        living = {n: size for n, size in living.items() if last.get(n, -1) > index or n in network.inputs}
    return found


def _divide(graph: ir.Graph, node: ir.Node, sizes: Sequence[int]) -> None:
    """Put Split, the node for every part, and Concat in the place of a node."""
    x, y = node.inputs[0], node.outputs[0]
    assert x is not None
    lengths = add_stored(graph, f"{y.name}.sizes", np.array(sizes, np.int64), TensorRole.CONSTANT)
    split = ir.Node(
        "", "Split", [x, lengths], [ir.AttrInt64("axis", 0)], num_outputs=len(sizes), name=f"{y.name}.split"
    )
    new, results = [split], []
    for index, (part, size) in enumerate(zip(split.outputs, sizes)):
        copy = ir.Node(
            "", node.op_type, [part, *node.inputs[1:]], node.attributes, name=f"{node.name or y.name}.{index}"
        )
        for value, like, suffix in ((part, x, "in"), (copy.outputs[0], y, "out")):
            value.name = unused_name(f"{y.name}.{suffix}{index}", graph)
            value.type = like.type
            value.shape = None if like.shape is None else ir.Shape([size, *like.shape[1:]])
        new.append(copy)
        results.append(copy.outputs[0])
    joined = ir.Node("", "Concat", results, [ir.AttrInt64("axis", 0)], name=f"{y.name}.concat")
    replace_nodes(graph, node, [node], [*new, joined], [(y, joined.outputs[0])])


def _sized(kind: object, symbol: str, size: int) -> object:
    if not isinstance(kind, TensorDescriptor) or kind.shape is None:
        return kind
    return TensorDescriptor(kind.dtype, tuple(size if d == symbol else d for d in kind.shape))
