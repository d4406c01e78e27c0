"""``deep500 profile``: where the time of a network goes, node by node."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.exit_codes import PASSED
from deep500.cli.network_options import read_inputs, read_network, read_sizes, register_operators
from deep500.cli.progress_line import ProgressLine
from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.core.texts import one_line, shown_path

if TYPE_CHECKING:
    from deep500.networks.profiling.report import NetworkProfile

__all__ = ["PROFILE_EXAMPLES", "profile_command"]

PROFILE_EXAMPLES = """\b
Timed are the whole network, and every node alone with the values that it has in
the whole network, in turn, in random order. Run as a whole, a framework may fuse
nodes, so that it is faster than the sum. FLOPs are counted; bytes are all that a
node reads and writes; "of peak" is the share of what this machine reached in a
product of large matrices, and in copying large arrays.

\b
Examples:
  deep500 profile model.onnx --framework pytorch --size batch=16
  deep500 profile lenet --loss SoftmaxCrossEntropyLoss --backprop --mode train
  deep500 profile model.onnx --sort flops --top 10 --picture heat.svg
  deep500 profile model.onnx --launches 6 --output profile.json

\b
Exit code:
  0 measured, 2 a mistake in the command, or a network that cannot be run,
  130 interrupted
"""

Model = Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX file, or a name of deep500 list models.")]
Framework = Annotated[str, typer.Option(metavar="NAME", help="Who runs it.")]
Device = Annotated[str | None, typer.Option(metavar="DEVICE", help="Where to run: cpu, gpu or gpu:N.")]
Sizes = Annotated[
    list[str] | None, typer.Option("--size", metavar="NAME=N", help="A symbolic size of the random inputs; else 2.")
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=FILE", help="Values of an input, a .npy file; else they are random."),
]
Mode = Annotated[str, typer.Option(metavar="MODE", help="eval, train, or declared: what each node says.")]
Backprop = Annotated[bool, typer.Option("--backprop", help="Compute the gradient of the loss, and of every node.")]
LossName = Annotated[str | None, typer.Option(metavar="NAME", help="A loss to append, or the output that is one.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of weights, random inputs and the order of runs.")]
TimeLimit = Annotated[float, typer.Option(metavar="SECONDS", help="Longest sampling in one process.")]
Launches = Annotated[int, typer.Option(metavar="N", help="Fresh processes; from 6 on the interval is over processes.")]
Peak = Annotated[bool, typer.Option("--peak/--no-peak", help="Measure what this machine reaches, to compare with.")]
Sort = Annotated[str, typer.Option(metavar="KEY", help="time, flops, bytes or order.")]
Top = Annotated[int | None, typer.Option(metavar="N", help="Show so many nodes.")]
Output = Annotated[str | None, typer.Option(metavar="FILE", help="Write all samples to this JSON file.")]
Picture = Annotated[str | None, typer.Option(metavar="FILE", help="Draw the graph as a heat map, an .svg file.")]
Operators = Annotated[
    list[str] | None, typer.Option(metavar="FILE", help="A Python file with the network's custom operators.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress line.")]


def profile_command(
    model: Model,
    framework: Framework = "pytorch",
    device: Device = None,
    sizes: Sizes = None,
    inputs: Inputs = None,
    mode: Mode = "eval",
    backprop: Backprop = False,
    loss: LossName = None,
    seed: Seed = 0,
    operators: Operators = None,
    time_limit: TimeLimit = 10.0,
    launches: Launches = 1,
    peak: Peak = True,
    sort: Sort = "time",
    top: Top = None,
    output: Output = None,
    picture: Picture = None,
    quiet: Quiet = False,
) -> int:
    """Time every node of a network, and show what it does with its time."""
    from deep500.core.files import write_atomically
    from deep500.networks.picture.drawing import draw_network
    from deep500.networks.profiling.profile import profile
    from deep500.recipe.resolve import find_executor

    _check(sort, top, launches, output, picture, model)
    make = find_executor(framework)
    register_operators(operators or [])
    network, loss_output = read_network(model, loss, mode, seed)
    values = read_inputs(network, inputs or [], read_sizes(sizes or []), seed)
    plan = _plan(time_limit)
    with ProgressLine(quiet) as line:
        if launches == 1:
            found = profile(
                network,
                lambda each: make(each, device=device),
                values,
                backprop=backprop,
                loss=loss_output,
                plan=plan,
                measure_peak=peak,
                seed=seed,
                tell=line.tell,
            )
        else:
            options: list[tuple[str, Any]] = [("--framework", framework), ("--device", device), ("--mode", mode)]
            options += [("--loss", loss), ("--seed", seed), ("--time-limit", time_limit)]
            options += [*(("--size", size) for size in sizes or []), *(("--input", value) for value in inputs or [])]
            options += [("--operators", file) for file in operators or []]
            found = _launched(model, options, ["--backprop"] if backprop else [], launches, peak=peak, line=line)
    print(found.table(sort, top))
    if output is not None:
        write_atomically(output, json.dumps(found.to_dict(), indent=1) + "\n", "profile")
        print(f"The profile is in {shown_path(output)}")
    if picture is not None:
        draw_network(make(network, device=device).network, picture, found.heat())
        print(f"The picture is in {shown_path(picture)}")
    return PASSED


def _check(sort: str, top: int | None, launches: int, output: str | None, picture: str | None, model: str) -> None:
    """Refuse what would be found to be wrong only after the measurement."""
    from deep500.core.files import check_separate, check_writable
    from deep500.networks.picture.drawing import check_picture_path
    from deep500.networks.profiling.report import SORTS

    if sort not in SORTS:
        raise InvalidInputError(f"--sort was given as {sort!r}; accepted are {', '.join(SORTS)}.")
    for name, number in (("--top", top), ("--launches", launches)):
        if number is not None and number < 1:
            raise InvalidInputError(f"{name} was given as {number}; accepted are whole numbers from 1.")
    check_separate({"profile": output, "picture": picture}, [model])
    if picture is not None:
        check_picture_path(picture)
        check_writable(picture, "picture")
    if output is not None:
        check_writable(output, "profile")


def _plan(time_limit: float) -> Any:
    from deep500.measure.sampling.plan import SamplingPlan
    from deep500.networks.profiling.profile import RATIO_HALF_WIDTH

    least = SamplingPlan().minimum_time_s
    return SamplingPlan(
        ratio_half_width=RATIO_HALF_WIDTH, time_limit_s=time_limit, minimum_time_s=min(least, max(time_limit, 0.0))
    )


def _launched(
    model: str,
    options: Sequence[tuple[str, Any]],
    flags: Sequence[str],
    launches: int,
    *,
    peak: bool,
    line: ProgressLine,
) -> NetworkProfile:
    """Return the profiles of fresh processes as one; the first measures what the machine reaches."""
    from deep500.networks.profiling.report import NetworkProfile

    given = [f"{name}={value}" for name, value in options if value is not None]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        for number in range(launches):
            line.tell(f"launch {number + 1} of {launches}")
            extra = ["--peak" if peak and not number else "--no-peak", "--quiet", f"--output={path}"]
            command = [sys.executable, "-m", "deep500", "profile", *given, *flags, *extra, "--", model]
            process = subprocess.run(command, capture_output=True, text=True, check=False)
            if process.returncode:
                lines = process.stderr.strip().splitlines() or ["it wrote nothing"]
                raise MeasurementError(
                    f"Launch {number + 1} ended with code {process.returncode}: "
                    f"{one_line(lines[-1].removeprefix('Error: '))}"
                )
            found.append(NetworkProfile.from_dict(json.loads(path.read_text(encoding="utf-8"))))
    return NetworkProfile.joined(found)
