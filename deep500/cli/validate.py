"""``deep500 validate``: do frameworks compute the same with a network, and which node is the first to differ?"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.exit_codes import FAILED, PASSED
from deep500.cli.network_options import read_inputs, read_network, read_sizes
from deep500.cli.progress_line import ProgressLine
from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.networks.validation.report import ValidationReport

__all__ = ["VALIDATE_EXAMPLES", "validate_command"]

VALIDATE_EXAMPLES = """\b
All frameworks get the same inputs. Compared are the outputs of the whole network,
the gradients of its loss by the parameters where it has one, and every node
alone, given the first framework's values: the first node that differs there is
where to look.

\b
Examples:
  deep500 validate model.onnx
  deep500 validate model.onnx --framework reference,pytorch,tensorflow --size batch=4
  deep500 validate model.onnx --input x=x.npy --input mask=mask.npy --tolerance 1e-4
  deep500 validate lenet --loss SoftmaxCrossEntropyLoss --mode train --output report.json

\b
Exit code:
  0 all agree, 1 some differ or cannot run the network, 2 a mistake in the command or
  no valid network, 130 interrupted
"""


def validate_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX file, or a name of deep500 list models.")],
    framework: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Frameworks, with commas between, the reference first; all by default."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=FILE", help="Values of an input, a .npy file; else they are random."),
    ] = None,
    sizes: Annotated[
        list[str] | None, typer.Option("--size", metavar="NAME=N", help="A symbolic size of the random inputs.")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(metavar="NAME", help="A loss to append, or the scalar output that is one.")
    ] = None,
    mode: Annotated[str, typer.Option(metavar="MODE", help="eval, train, or declared: what each node says.")] = "eval",
    tolerance: Annotated[
        float | None, typer.Option(metavar="X", help="What is allowed of outputs, relative to the largest value.")
    ] = None,
    device: Annotated[str | None, typer.Option(metavar="DEVICE", help="Where to run: cpu, gpu or gpu:N.")] = None,
    alone: Annotated[bool, typer.Option("--alone/--no-alone", help="Whether every node is run alone.")] = True,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of weights and random inputs.")] = 0,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Write the report to this JSON file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress line.")] = False,
) -> int:
    """Compare what frameworks compute with a network, and name the first node that differs."""
    from deep500.core.files import check_writable, write_atomically
    from deep500.networks.validation.ladder import validate

    if output is not None:
        check_writable(output, "report")
    network, loss_output = read_network(model, loss, mode, seed)
    factories = _factories(framework, device)
    values = read_inputs(network, inputs or [], read_sizes(sizes or []), seed)
    with ProgressLine(quiet) as line:
        report = validate(
            network,
            factories,
            values,
            loss=loss_output,
            tolerance=tolerance,
            alone=alone,
            seed=seed,
            tell=line.tell,
        )
    print(report)
    if output is not None:
        write_atomically(output, json.dumps(_as_json(report), indent=1) + "\n", "report")
        print(f"The report is in {shown_path(output)}")
    return PASSED if report.passed else FAILED


def _factories(framework: str | None, device: str | None) -> list[Callable[[Any], Any]]:
    from deep500.frameworks import installed_frameworks
    from deep500.recipe.resolve import find_executor

    names = _reference_first(installed_frameworks()) if framework is None else framework.split(",")
    names = [name.strip() for name in names]
    if not all(names) or len(set(names)) < len(names) or len(names) < 2:
        raise InvalidInputError(
            f"--framework was given as {framework!r}; accepted are two or more different names with commas between "
            f"them, such as reference,pytorch."
        )
    makers = [find_executor(name) for name in names]
    # The reference runs on the processor whatever the others run on.
    return [_on(make, None if name == "reference" else device) for name, make in zip(names, makers, strict=True)]


def _on(make: Callable[..., Any], device: str | None) -> Callable[[Any], Any]:
    return lambda network: make(network, device=device)


def _reference_first(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: (name != "reference", name))


def _as_json(report: ValidationReport) -> dict[str, Any]:
    first = {name: report.first_diverging(name) for name in report.frameworks}
    return {
        "passed": report.passed,
        "first_diverging_node": {name: None if node is None else node.node for name, node in first.items()},
        **dataclasses.asdict(report),
    }
