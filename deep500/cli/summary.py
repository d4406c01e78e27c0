"""``deep500 summary``: the nodes of a network as a table, with parameters and operations."""

from __future__ import annotations

from typing import Annotated

import typer

from deep500.cli.exit_codes import PASSED
from deep500.cli.network_options import read_network, read_sizes

__all__ = ["SUMMARY_EXAMPLES", "summary_command"]

SUMMARY_EXAMPLES = """\b
Nodes of branches and loop bodies are indented below the node that holds them. A
"?" stands for what is not known: a shape, or the operations where a size is
symbolic or there is no rule for the operator.

\b
Examples:
  deep500 summary model.onnx
  deep500 summary model.onnx --batch-size 64 --size length=128
  deep500 summary lenet --loss SoftmaxCrossEntropyLoss

\b
Exit code:
  0 done, 2 a mistake in the command or no valid network
"""


def summary_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX file, or a name of deep500 list models.")],
    batch_size: Annotated[int, typer.Option(metavar="N", help="Samples for which operations are counted.")] = 1,
    sizes: Annotated[
        list[str] | None, typer.Option("--size", metavar="NAME=N", help="A symbolic size; may be given several times.")
    ] = None,
    loss: Annotated[str | None, typer.Option(metavar="NAME", help="A loss to append.")] = None,
    mode: Annotated[str, typer.Option(metavar="MODE", help="eval, train, or declared: what each node says.")] = "eval",
) -> int:
    """Show the nodes of a network with shapes, parameters and floating-point operations."""
    network, _ = read_network(model, loss, mode)
    print(network.summary(batch_size, read_sizes(sizes or [])))
    return PASSED
