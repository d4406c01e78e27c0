"""``deep500 fleet trace generate``: a trace of which the truth is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_table
from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.options import AsJson, PageFile, Quiet, check_outputs, print_document, print_written
from deep500.cli.progress_line import ProgressLine

if TYPE_CHECKING:
    from deep500.fleet.page import Page

__all__ = ["GENERATE_EXAMPLES", "trace_generate_command"]

GENERATE_EXAMPLES = """\b
Writes pai_job_table.csv, pai_task_table.csv and pai_instance_table.csv as the
PAI trace has them (no header), and truth.json: the rates at which tasks fail
and succeed, by GPU type, and what estimators are to find.

\b
Examples:
  deep500 fleet trace generate made/ --jobs 20000
  deep500 fleet trace generate big/ --jobs 1050501 --seed 7
  deep500 fleet trace generate flat/ --jobs 20000 --failing-hours 20 --passing-hours 5

\b
Exit code:
  0 written, 2 a mistake in the command
"""


def trace_generate_command(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where to write.")],
    jobs: Annotated[int, typer.Option(metavar="N", help="The number of jobs.")] = 20_000,
    seed: Annotated[int, typer.Option(metavar="N", help="What everything random comes from.")] = 0,
    users: Annotated[
        int | None, typer.Option(metavar="N", help="The number of users; by default one for 40 jobs, 5 to 1,242.")
    ] = None,
    days: Annotated[float, typer.Option(metavar="N", help="How long the trace is.")] = 62.0,
    failing_hours: Annotated[
        float | None,
        typer.Option(metavar="H", help="With --passing-hours: constant rates, the same for all; mean time to failure."),
    ] = None,
    passing_hours: Annotated[float | None, typer.Option(metavar="H", help="The mean time to success.")] = None,
    cancelled: Annotated[
        float, typer.Option("--cancelled-per-hour", metavar="R", help="The rate at which someone ends a task.")
    ] = 0.0,
    page: PageFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Write the tables of a trace with known rates of failing and succeeding."""
    from deep500.core.errors import FleetError
    from deep500.core.texts import shown_path
    from deep500.fleet.trace.generating import Hazards, generate_trace

    if (failing_hours is None) != (passing_hours is None):
        raise FleetError("Constant rates need both --failing-hours and --passing-hours; one of them was given.")
    if failing_hours is not None and passing_hours is not None:
        hazards = Hazards.constant(failing_hours, passing_hours, days=days, cancelled_per_h=cancelled)
    else:
        hazards = Hazards(days=days, cancelled_per_h=cancelled)
    check_outputs([], page=page)
    with ProgressLine(quiet) as line:
        truth = generate_trace(folder, jobs, seed, hazards, users, line.tell)

    if page is not None:
        _page(truth).write(page)

    def show() -> None:
        print_table(_counts(truth))
        print(f"\nThe trace and its truth are in {shown_path(folder)}")

    print_document(truth, as_json, show)
    print_written(as_json, page=page)
    return PASSED


def _counts(truth: dict[str, Any]) -> list[tuple[str, str]]:
    counts = [(name, f"{truth[name]:,}") for name in ("jobs", "tasks", "instances", "users")]
    return [*counts, *((f"tasks {name}", f"{count:,}") for name, count in truth["task_statuses"].items())]


def _page(truth: dict[str, Any]) -> Page:
    from deep500.fleet.page import Page
    from deep500.fleet.trace.truth_picture import truth_figure

    page = Page("A trace of which the truth is known").table(("what", "how many"), _counts(truth))
    page.picture(
        lambda: truth_figure(truth),
        "What was planted: the share of tasks of each GPU type, with all else as it is least, that would not have "
        "ended this way, were it the only one.",
    )
    for cause in ("failed", "passed"):
        effects = truth[cause]["marginal"]["log_ratio_per_doubling"]
        rows = [(name, f"{math.exp(value):.3f}") for name, value in effects.items()]
        page.heading(f"Rate at which tasks have {cause}, times this for each doubling").table(("factor", "times"), rows)
    return page
