"""A network as a table that people read."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import onnx_ir as ir
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.flops import FlopCount, count_flops
from deep500.networks.operator_node import describe_value

if TYPE_CHECKING:
    from deep500.networks.network import Network

__all__ = ["network_summary"]

#: Wide enough for every table, so that its form does not depend on the terminal.
_WIDTH = 100_000


def network_summary(network: Network, batch_size: int = 1) -> str:
    """Return a table of the nodes, and totals, as plain text.

    A parameter that several nodes share is counted for the first. ``?`` stands for what is not known: a shape, or
    the operations of an operator without a rule.

    Args:
        network: The network.
        batch_size: Number of samples for which operations are counted; see
            :func:`deep500.networks.flops.count_flops`.

    Raises:
        InvalidInputError: The batch size is not accepted.
        InvalidNetworkError: A node's operations depend on a symbolic size other than the batch.
    """
    count = count_flops(network, batch_size)
    lines = [f"Network {network.name!r} in {'training' if network.mode == 'train' else 'evaluation'} mode"]
    lines += _tensors("Inputs", network.inputs)
    lines += _tensors("Outputs", network.outputs)
    lines += _tensors("Losses", network.losses)
    return "\n".join([*lines, "", *_node_table(network, count), "", *_totals(network, count)])


def _tensors(title: str, descriptors: Mapping[str, TensorDescriptor]) -> list[str]:
    return [f"{title}: {', '.join(f'{name}: {d}' for name, d in descriptors.items())}"] if descriptors else []


def _node_table(network: Network, count: FlopCount) -> Iterator[str]:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in ("Node", "Operator", "Output", "Parameters", "FLOPs"):
        table.add_column(title, justify="right" if title in ("Parameters", "FLOPs") else "left", no_wrap=True)
    parameters = network.parameters
    seen: set[str] = set()
    for node, counted, flops in zip(network.model.graph, count.nodes, count.flops):
        read = [name for name in dict.fromkeys(counted.inputs) if name in parameters and name not in seen]
        seen.update(read)
        cells = (
            counted.name,
            f"{counted.domain}::{counted.op_type}" if counted.domain else counted.op_type,
            ", ".join(_shape(value) for value in node.outputs if value.name),
            f"{sum(parameters[name].element_count or 0 for name in read):,}",
            "?" if flops is None else f"{flops:,}",
        )
        table.add_row(*(Text(" ".join(cell.split())) for cell in cells))  # Text: names are no markup
    buffer = io.StringIO()
    console = Console(file=buffer, width=_WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(table)
    return (line.rstrip() for line in buffer.getvalue().rstrip().split("\n"))


def _shape(value: ir.Value) -> str:
    descriptor = describe_value(value)
    return "?" if descriptor is None else str(descriptor)


def _totals(network: Network, count: FlopCount) -> Iterator[str]:
    yield f"Parameters: {network.parameter_count:,} ({network.parameter_size_bytes:,} bytes)"
    if network.states:
        scalars = sum(d.element_count or 0 for d in network.states.values())
        size_bytes = sum(d.size_bytes or 0 for d in network.states.values())
        yield f"States: {scalars:,} ({size_bytes:,} bytes)"
    samples = "1 sample" if count.batch_size == 1 else f"{count.batch_size:,} samples"
    yield f"FLOPs of one inference of {samples}: {count.total:,}"
    if count.uncounted:
        counts = {name: "1 node" if number == 1 else f"{number} nodes" for name, number in count.uncounted.items()}
        yield f"Not counted, for want of a rule: {', '.join(f'{name} ({text})' for name, text in counts.items())}"
