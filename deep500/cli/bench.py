"""``deep500 bench``: how long a workload takes, alone or against others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from deep500.cli.console import print_error
from deep500.cli.progress_line import ProgressLine, progress_text

if TYPE_CHECKING:
    from deep500.measure.results.document import Measurement
    from deep500.measure.sampling.plan import SamplingPlan

__all__ = ["BENCH_EXAMPLES", "BenchCommand", "bench_command"]

BENCH_EXAMPLES = """\b
Workloads:
  model:NAME[,key=value...][@FRAMEWORK[:DEVICE]]   a training step, or with mode=inference
  op:NAME,INPUT=SHAPE...[@FRAMEWORK[:DEVICE]]      one operator
  dataset:NAME                                     reading a minibatch
  recipe:FILE                                      a whole recipe
  custom:FILE:NAME[,key=value...][@FRAMEWORK]      an operator of your own file
  package.module:function                          any Python callable
The name of a problem set in their place measures all of its sizes, and has
options of its own: deep500 bench deepbench --help

\b
Examples:
  deep500 bench model:lenet@pytorch
  deep500 bench model:lenet@pytorch --against model:lenet@tensorflow --output result.json
  deep500 bench op:Conv,X=8x3x32x32,W=16x3x3x3@pytorch --threads 1
  deep500 bench my_module:new --against my_module:old --margin 0.01
  deep500 bench dataset:digits --launches 1 --time-limit 2
  deep500 bench deepbench --op gemm --framework pytorch --limit 5

\b
Exit code:
  0 measured, 2 a mistake in the command, or a workload that fails,
  130 interrupted (the launches so far are shown, and are in the result file)
"""

Workload = Annotated[str, typer.Argument(metavar="WORKLOAD", help="What to measure; with --against, the base.")]
Against = Annotated[
    list[str] | None, typer.Option(metavar="WORKLOAD", help="Compare with this one; may be given several times.")
]
Output = Annotated[str | None, typer.Option(metavar="FILE", help="Write the result to this JSON file.")]
Launches = Annotated[int, typer.Option(metavar="N", help="Fresh processes; an interval needs 6.")]
Precision = Annotated[
    float, typer.Option(metavar="SHARE", help="Stop when half the interval is this share of the median.")
]
TimeLimit = Annotated[
    float, typer.Option(metavar="SECONDS", help="Longest sampling in one process; start and warm-up come on top.")
]
WarmUp = Annotated[int | None, typer.Option(metavar="N", help="Samples that do not count; by default it is found out.")]
Threads = Annotated[int | None, typer.Option(metavar="N", help="Number of threads that libraries may use.")]
Margin = Annotated[float | None, typer.Option(metavar="SHARE", help="Difference that does not matter, such as 0.01.")]
Quantile = Annotated[float, typer.Option(metavar="Q", help="Quantile within each process, such as 0.95.")]
Pairing = Annotated[
    str | None,
    typer.Option(metavar="HOW", help="With --against: samples (run by run in one process) or launches (in own ones)."),
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="NAME", help="Name of each workload, in their order.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the random order of runs.")]
Because = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Why just these workloads and this machine, for the record.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse a machine that fails an isolation check.")]
Peak = Annotated[bool, typer.Option("--peak/--no-peak", help="Measure what this machine reaches, to compare with.")]
Picture = Annotated[str | None, typer.Option(metavar="FILE", help="Draw the samples: a .png or .svg file.")]
PictureKind = Annotated[str, typer.Option(metavar="KIND", help="violin or ecdf.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


class BenchCommand(TyperCommand):
    """``bench``; in front of its arguments, the name of a problem set makes it the command that measures the set."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments, as those of the other command where they begin with a problem set."""
        from deep500.operators.problem_set import PROBLEM_SETS

        if args and args[0] in PROBLEM_SETS:
            from deep500.cli.problem_set import problem_set_parser

            return problem_set_parser().make_context(info_name, args, parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)


def bench_command(
    workload: Workload,
    against: Against = None,
    output: Output = None,
    launches: Launches = 10,
    precision: Precision = 0.05,
    time_limit: TimeLimit = 10.0,
    warm_up: WarmUp = None,
    threads: Threads = None,
    margin: Margin = None,
    quantile: Quantile = 0.5,
    pairing: Pairing = None,
    labels: Labels = None,
    seed: Seed = 0,
    because: Because = None,
    strict: Strict = False,
    peak: Peak = True,
    picture: Picture = None,
    picture_kind: PictureKind = "violin",
    quiet: Quiet = False,
) -> int:
    """Measure how long something takes, in fresh processes, with intervals that can be defended."""
    from deep500.core.files import check_separate, check_writable
    from deep500.measure.picture import check_picture, draw
    from deep500.measure.results.document import Statistic

    plan = _plan(precision, time_limit, warm_up, threads)
    settings = {
        "launches": launches,
        "plan": plan,
        "pairing": pairing,
        "labels": labels or None,
        "seed": seed,
        "margin": margin,
        "statistic": Statistic() if quantile == 0.5 else Statistic("quantile", quantile),
        "strict": strict,
        "measure_peak": peak,
        "justification": because,
    }
    check_separate({"result": output, "picture": picture})
    if output is not None:
        check_writable(output, "result")
    if picture is not None:
        check_picture(picture_kind, picture)
    _warn_of_few_launches(launches, len(against or ()))
    measurement = _measure([workload, *(against or ())], settings, output, quiet)
    if picture is not None:
        draw(measurement, picture_kind, Path(picture))
    return 0


def _warn_of_few_launches(launches: int, comparisons: int) -> None:
    """Tell before anything runs that no verdict can come of it."""
    if comparisons and launches >= 1:
        from deep500.measure.statistics import launches_needed

        needed = launches_needed(comparisons)
        if launches < needed:
            count = f"{comparisons} comparison{'s' if comparisons > 1 else ''}"
            print(f"Note: a verdict on {count} needs {needed} launches; there will be {launches}.", file=sys.stderr)


def _plan(precision: float, time_limit: float, warm_up: int | None, threads: int | None) -> SamplingPlan:
    from deep500.measure.sampling.plan import SamplingPlan

    return SamplingPlan(
        relative_half_width=precision,
        time_limit_s=time_limit,
        minimum_time_s=min(SamplingPlan.minimum_time_s, max(time_limit, 0.0)),
        warm_up=warm_up,
        threads=threads,
    )


def _measure(workloads: Sequence[str], settings: dict[str, Any], output: str | None, quiet: bool) -> Measurement:
    """Measure; show what was found at the end, and also when something interrupts."""
    from deep500.cli.measurement import show_measurement
    from deep500.measure.results.files import write_measurement
    from deep500.measure.sampling.benchmark import bench

    latest: list[Measurement] = []
    written: list[str] = []

    def keep(measurement: Measurement) -> None:
        latest[:] = [measurement]
        if output is not None:
            write_measurement(measurement, output)
            written[:] = [output]

    try:
        with ProgressLine(quiet) as line:
            bench(*workloads, **settings, on_progress=lambda p: line.tell(progress_text(p)), on_launch=keep)
    except KeyboardInterrupt:
        if not latest:
            print_error("interrupted before the first launch had ended, so nothing was measured.")
        raise
    finally:
        for measurement in latest:
            show_measurement(measurement, *written)
    return latest[0]
