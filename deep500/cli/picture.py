"""``deep500 picture``: the graph of a network as a file of vector graphics."""

from __future__ import annotations

from typing import Annotated

import typer

from deep500.cli.exit_codes import PASSED
from deep500.cli.network_options import read_network
from deep500.core.texts import shown_path

__all__ = ["PICTURE_EXAMPLES", "picture_command"]

PICTURE_EXAMPLES = """\b
Any browser shows the file, and tells all of a node when the pointer is on it:
attributes, types, stored tensors.

\b
Examples:
  deep500 picture model.onnx --output graph.svg
  deep500 picture lenet --loss SoftmaxCrossEntropyLoss --output lenet.svg

\b
Exit code:
  0 done, 2 a mistake in the command, no valid network, or a file that cannot be
  written
"""


def picture_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX file, or a name of deep500 list models.")],
    output: Annotated[str, typer.Option(metavar="FILE", help="Where to: a name that ends with .svg.")],
    loss: Annotated[str | None, typer.Option(metavar="NAME", help="A loss to append.")] = None,
) -> int:
    """Draw the graph of a network: operators, names and shapes from the inputs down to the outputs."""
    from deep500.core.files import check_separate, check_writable
    from deep500.networks.picture.drawing import check_picture_path

    check_picture_path(output)
    check_separate({"picture": output}, [model])
    check_writable(output, "picture")
    network, _ = read_network(model, loss)
    network.picture(output)
    print(f"The picture is in {shown_path(output)}")
    return PASSED
