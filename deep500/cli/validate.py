"""``deep500 validate``: do frameworks compute the same with a network, and which node is the first to differ?"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.exit_codes import FAILED, PASSED
from deep500.cli.progress_line import ProgressLine
from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.networks.network import Network
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
    network, loss_output = _network(model, loss, mode, seed)
    factories = _factories(framework, device)
    values = _values(inputs or [])
    with ProgressLine(quiet) as line:
        report = validate(
            network,
            factories,
            {**_random(network, sizes or [], seed), **values} if values else None,
            sizes=_sizes(sizes or []),
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


def _network(model: str, loss: str | None, mode: str, seed: int) -> tuple[Network, str | None]:
    """Return the network in its mode, and the output that is differentiated."""
    from deep500.networks.creation import MODELS, create_model
    from deep500.networks.network import Network

    modes: dict[str, Callable[[Network], Network]] = {
        "eval": Network.eval,
        "train": Network.train,
        "declared": Network.as_declared,
    }
    if mode not in modes:
        raise InvalidInputError(f"--mode was given as {mode!r}; accepted are {', '.join(modes)}.")
    network = create_model(model, seed=seed) if model in MODELS else Network.load(model)
    output = loss
    if loss is not None and loss not in network.outputs and loss not in network.losses:
        output = network.append_loss(loss)
    return modes[mode](network), output


def _factories(framework: str | None, device: str | None) -> list[Callable[[Any], Any]]:
    from deep500.frameworks import installed_frameworks
    from deep500.recipe.resolve import find_executor

    names = _reference_first(installed_frameworks()) if framework is None else framework.split(",")
    names = [name.strip() for name in names]
    if not all(names) or len(set(names)) < len(names) or len(names) < 2:
        raise InvalidInputError(
            f"--framework was given as {framework!r}; accepted are two or more different names with commas between them, "
            f"such as reference,pytorch."
        )
    makers = [find_executor(name) for name in names]
    # The reference runs on the processor whatever the others run on.
    return [_on(make, None if name == "reference" else device) for name, make in zip(names, makers, strict=True)]


def _on(make: Callable[..., Any], device: str | None) -> Callable[[Any], Any]:
    return lambda network: make(network, device=device)


def _reference_first(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: (name != "reference", name))


def _sizes(texts: Sequence[str]) -> dict[str, int]:
    found = {}
    for text in texts:
        name, equals, size = text.partition("=")
        if not name or not equals or not size.isdecimal():
            raise InvalidInputError(f"--size was given as {text!r}; accepted is NAME=N, such as batch=4.")
        found[name] = int(size)
    return found


def _values(texts: Sequence[str]) -> dict[str, Any]:
    import numpy as np

    found = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not name or not equals or not path:
            raise InvalidInputError(f"--input was given as {text!r}; accepted is NAME=FILE, such as x=x.npy.")
        try:
            value = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InvalidInputError(f"--input {text}: {shown_path(path)} is no file of one array: {error}") from error
        if not isinstance(value, np.ndarray):
            raise InvalidInputError(
                f"--input {text}: {shown_path(path)} holds several arrays; accepted is a .npy file."
            )
        found[name] = value
    return found


def _random(network: Network, sizes: Sequence[str], seed: int) -> dict[str, Any]:
    from deep500.networks.random_inputs import random_inputs

    return dict(random_inputs(network, _sizes(sizes), seed))


def _as_json(report: ValidationReport) -> dict[str, Any]:
    first = {name: report.first_diverging(name) for name in report.frameworks}
    return {
        "passed": report.passed,
        "first_diverging_node": {name: None if node is None else node.node for name, node in first.items()},
        **dataclasses.asdict(report),
    }
