"""``deep500 op``: new operators from a skeleton, and checks of those that were written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.exit_codes import FAILED, PASSED
from deep500.core.errors import OperatorError
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.operators.skeleton.rendering import Form

__all__ = ["op_app"]

OP_EXAMPLES = """\b
Examples:
  deep500 op new smooth_clip
  deep500 op check smooth_clip.py
"""

NEW_EXAMPLES = """\b
Examples:
  deep500 op new smooth_clip                 smooth_clip.py, smooth_clip.cpp, test_smooth_clip.py
  deep500 op new smooth_clip --python        without C++
  deep500 op new smooth_clip --cuda          with a .cu file, for the processor and GPUs
  deep500 op new blend --inputs 3 --outputs 2 --folder my_operators

\b
Exit code:
  0 written, 2 refused; then no file was written
"""

CHECK_EXAMPLES = """\b
Of each operator of the file: whether it compiles; whether its values, in each
dtype, are those that it has in float64; whether its gradients are those of
differences; whether each framework returns the same, eagerly, compiled, and
saved and loaded; how long a call takes, beside the framework's own function
where the operator names one (framework_function) or --against does.

\b
Examples:
  deep500 op check smooth_clip.py
  deep500 op check ipow.py --set power=3 --framework pytorch,reference
  deep500 op check pool.cpp --input 2x3x8x8 --no-bench
  deep500 op check softplus.py --against torch.nn.functional:softplus --output report.json

\b
Exit code:
  0 nothing FAILED, 1 something FAILED,
  2 a mistake in the command, or a file that cannot be read or holds no operator,
  130 interrupted
"""

op_app = typer.Typer(
    rich_markup_mode=None,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@op_app.callback(epilog=OP_EXAMPLES)
def op(context: typer.Context) -> None:
    """Write an operator once, for every framework."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@op_app.command(epilog=NEW_EXAMPLES)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the operator, such as smooth_clip.")],
    python: Annotated[bool, typer.Option("--python", help="In Python alone.")] = False,
    cpp: Annotated[
        bool, typer.Option("--cpp", help="In C++, with the same in Python to compare; the default.")
    ] = False,
    cuda: Annotated[bool, typer.Option("--cuda", help="In CUDA and C++, with the same in Python to compare.")] = False,
    folder: Annotated[str, typer.Option(metavar="DIR", help="Where to write.")] = ".",
    inputs: Annotated[int, typer.Option(metavar="N", help="Number of inputs.")] = 1,
    outputs: Annotated[int, typer.Option(metavar="N", help="Number of outputs.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace files of these names.")] = False,
) -> int:
    """Write the files of a new operator, which work: replace what they compute."""
    from deep500.operators.skeleton.writing import write_skeleton

    chosen: list[Form] = [form for form, is_chosen in _forms(python, cpp, cuda) if is_chosen]
    if len(chosen) > 1:
        raise OperatorError(f"--{' and --'.join(chosen)} were given; accepted is one of them.")
    form: Form = chosen[0] if chosen else "cpp"
    written = write_skeleton(name, form, folder=folder, inputs=inputs, outputs=outputs, replace=force)
    names = [shown_path(path) for path in written]
    print(f"Wrote {', '.join(names[:-1])} and {names[-1]}.")
    print(f"Next: deep500 op check {names[0]}")
    print(f"      pytest {names[-1]}")
    return PASSED


def _forms(python: bool, cpp: bool, cuda: bool) -> list[tuple[Form, bool]]:
    return [("python", python), ("cpp", cpp), ("cuda", cuda)]


@op_app.command(epilog=CHECK_EXAMPLES)
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .py file with operators, or a .cpp or .cu file.")],
    framework: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Frameworks, with commas between; by default all installed.")
    ] = None,
    device: Annotated[str | None, typer.Option(metavar="DEVICE", help="Where to run: cpu, gpu or gpu:N.")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Value of an attribute; may be repeated.")
    ] = None,
    shapes: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="SHAPE", help="Shape of an input, such as 2x3x4 or 5:int64; once for each."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="FUNCTION", help="Compare with it: [FRAMEWORK=]package.module:function."),
    ] = None,
    bench: Annotated[bool, typer.Option("--bench/--no-bench", help="Measure how long calls take.")] = True,
    launches: Annotated[int, typer.Option(metavar="N", help="Fresh processes a time; an interval needs 6.")] = 6,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the values.")] = 0,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Write the report to this JSON file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> int:
    """Build, validate and measure the operators of a file."""
    from deep500.cli.op_report import show_operator_check
    from deep500.cli.progress_line import ProgressLine
    from deep500.core.counts import check_count
    from deep500.core.files import check_separate, check_writable, write_atomically
    from deep500.core.random import check_seed
    from deep500.core.signals import signals_deferred

    with signals_deferred():  # libraries in C++ do not survive Ctrl-C while they are imported
        from deep500.workloads._operator_check.checking import CheckSettings, check_file
        from deep500.workloads._operator_check.functions import read_against
        from deep500.workloads._operator_check.inputs import read_descriptor
    check_separate({"report": output}, [file])
    if output is not None:
        check_writable(output, "report")
    settings = CheckSettings(
        frameworks=None if framework is None else [name.strip() for name in framework.split(",")],
        device=device,
        attributes=_assignments(values or []),
        inputs=tuple(map(read_descriptor, shapes)) if shapes else None,
        against=read_against(against or []),
        measure=bench,
        launches=check_count("--launches", launches, least=1, error=OperatorError),
        seed=check_seed(seed),
    )
    with ProgressLine(quiet) as line:
        report = check_file(file, settings, line.tell)
    show_operator_check(report)
    if output is not None:
        write_atomically(output, json.dumps(report.to_dict(), indent=2, allow_nan=False) + "\n", "report")
        print(f"The report is in {shown_path(output)}")
    return PASSED if report.passed else FAILED


def _assignments(texts: list[str]) -> dict[str, Any]:
    """Return the values of attributes."""
    from deep500.recipe.overrides import parse_assignment

    found: dict[str, Any] = {}
    for key, value in map(parse_assignment, texts):
        if key in found:
            raise OperatorError(f"--set gives {key} twice.")
        found[key] = value
    return found
