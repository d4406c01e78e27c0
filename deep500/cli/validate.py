"""``deep500 validate``: do frameworks compute the same with a network, and which node is the first to differ?"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.exit_codes import FAILED, PASSED
from deep500.cli.network_options import read_inputs, read_network, read_sizes, register_operators
from deep500.cli.progress_line import ProgressLine
from deep500.cli.trajectories import compare_training
from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.networks.validation.report import ValidationReport
    from deep500.training.validation.trajectory_report import TrajectoryReport

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
  deep500 validate classifier.onnx --operators swish.py --framework reference,pytorch
  deep500 validate lenet --loss SoftmaxCrossEntropyLoss --training-steps 20 --optimizer adam --picture apart.svg

\b
With --training-steps, all train from the same weights on the same minibatches. How far
they may part follows from rounding in this very training; where one parts, the step
is made again node by node, which tells whether a node or the update differs.

\b
Exit code:
  0 all agree, 1 some differ or cannot run the network, 2 a mistake in the command or
  no valid network, 130 interrupted
"""


Model = Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX file, or a name of deep500 list models.")]
Frameworks = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Frameworks, with commas between, the reference first; all by default."),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=FILE", help="Values of an input, a .npy file; else they are random."),
]
Sizes = Annotated[
    list[str] | None, typer.Option("--size", metavar="NAME=N", help="A symbolic size of the random inputs.")
]
LossName = Annotated[
    str | None, typer.Option(metavar="NAME", help="A loss to append, or the scalar output that is one.")
]
Mode = Annotated[str, typer.Option(metavar="MODE", help="eval, train, or declared: what each node says.")]
AllowedShare = Annotated[
    float | None, typer.Option(metavar="X", help="What is allowed of outputs, relative to the largest value.")
]
Device = Annotated[str | None, typer.Option(metavar="DEVICE", help="Where to run: cpu, gpu or gpu:N.")]
Alone = Annotated[bool, typer.Option("--alone/--no-alone", help="Whether every node is run alone.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of weights and random inputs.")]
Operators = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="A Python file with the network's custom operators."),
]
TrainingSteps = Annotated[
    int | None, typer.Option(metavar="N", help="Compare trainings of so many steps instead of one run.")
]
OptimizerName = Annotated[str, typer.Option(metavar="NAME", help="What trains.")]
DatasetName = Annotated[str | None, typer.Option(metavar="NAME", help="What is trained on; random inputs by default.")]
BatchSize = Annotated[int, typer.Option(metavar="N", help="Samples a training step.")]
PictureFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Draw losses and distances of the trainings, .svg or .png.")
]
OutputFile = Annotated[str | None, typer.Option(metavar="FILE", help="Write the report to this JSON file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress line.")]


def validate_command(
    model: Model,
    framework: Frameworks = None,
    inputs: Inputs = None,
    sizes: Sizes = None,
    loss: LossName = None,
    mode: Mode = "eval",
    tolerance: AllowedShare = None,
    device: Device = None,
    alone: Alone = True,
    seed: Seed = 0,
    operators: Operators = None,
    training_steps: TrainingSteps = None,
    optimizer: OptimizerName = "gradient_descent",
    dataset: DatasetName = None,
    batch_size: BatchSize = 32,
    picture: PictureFile = None,
    output: OutputFile = None,
    quiet: Quiet = False,
) -> int:
    """Compare what frameworks compute with a network, and name the first node that differs."""
    from deep500.core.files import check_writable
    from deep500.networks.validation.ladder import validate

    if output is not None:
        check_writable(output, "report")
    _check_training_options(training_steps, picture, inputs, alone)
    register_operators(operators or [])
    network, loss_output = read_network(model, loss, mode, seed)
    factories = _factories(framework, device)
    report: TrajectoryReport | ValidationReport
    with ProgressLine(quiet) as line:
        if training_steps is not None:
            report = compare_training(
                network,
                factories,
                training_steps,
                loss=loss_output,
                optimizer=optimizer,
                dataset=dataset,
                batch_size=batch_size,
                sizes=read_sizes(sizes or []),
                seed=seed,
                tolerance=tolerance,
                tell=line.tell,
            )
        else:
            report = validate(
                network,
                factories,
                read_inputs(network, inputs or [], read_sizes(sizes or []), seed),
                loss=loss_output,
                tolerance=tolerance,
                alone=alone,
                seed=seed,
                tell=line.tell,
            )
    return _told(report, output, picture)


def _told(report: TrajectoryReport | ValidationReport, output: str | None, picture: str | None) -> int:
    """Print a report, write its files, and return the exit code."""
    from deep500.core.files import write_atomically
    from deep500.networks.validation.report import ValidationReport

    print(report)
    if picture is not None and not isinstance(report, ValidationReport):
        report.draw(picture)
        print(f"The picture is in {shown_path(picture)}")
    if output is not None:
        content = _as_json(report) if isinstance(report, ValidationReport) else report.to_dict()
        write_atomically(output, json.dumps(content, indent=1) + "\n", "report")
        print(f"The report is in {shown_path(output)}")
    return PASSED if report.passed else FAILED


def _check_training_options(steps: int | None, picture: str | None, inputs: Sequence[str] | None, alone: bool) -> None:
    """Check, before anything runs, that the options go together and the picture can be written."""
    from deep500.core.files import check_writable
    from deep500.measure.rendering import picture_format

    if steps is None and picture is not None:
        raise InvalidInputError("--picture shows trainings; give --training-steps too.")
    if steps is not None and (inputs or not alone):
        raise InvalidInputError("--input and --no-alone are for one run; leave them out with --training-steps.")
    if steps is not None and steps < 1:
        raise InvalidInputError(f"--training-steps was given as {steps}; accepted are whole numbers from 1.")
    if picture is not None:
        picture_format(picture, InvalidInputError)
        check_writable(picture, "picture")


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
