"""``deep500 fleet trace report``: when tasks succeed or fail, and what goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deep500.cli.console import print_table
from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.options import (
    AsJson,
    Format,
    OutcomePaths,
    PageFile,
    PictureFile,
    Quiet,
    check_outputs,
    print_document,
    print_input,
    print_written,
)
from deep500.cli.progress_line import ProgressLine

if TYPE_CHECKING:
    from deep500.fleet.input_report import InputReport
    from deep500.fleet.trace.classic import ClassicView
    from deep500.fleet.trace.report import TraceReport

__all__ = ["REPORT_EXAMPLES", "trace_report_command"]

REPORT_EXAMPLES = """\b
By GPU type, GPU and CPU percentage, memory, task size and user, those that the
trace tells of: the shares of tasks that have failed and passed after some time
(Aalen-Johansen), that still run (Kaplan-Meier), log-rank tests, mean times to
failure, GPU time lost; Cox models of failing and of succeeding with all of
them; rank correlations. Running and cancelled tasks are kept as censored;
errors are over users; p-values are corrected for their number (Holm).

\b
--classic adds mean run times of groups with Pearson's correlation, and what is
wrong with them.

\b
Examples:
  deep500 fleet trace report trace/
  deep500 fleet trace report trace/ --classic --page trace.html
  deep500 fleet trace report jobs.jsonl --at 1 --at 48 --factor queue
  deep500 fleet trace report trace/ --json > trace.json

\b
Exit code:
  0 told, 2 a mistake in the command, or nothing that could be read
"""


def trace_report_command(
    paths: OutcomePaths,
    format: Format = None,
    classic: Annotated[bool, typer.Option("--classic", help="Add the view of group means, and its flaws.")] = False,
    at: Annotated[
        list[float] | None,
        typer.Option(metavar="HOURS", help="Tell shares after so many hours; may be given several times."),
    ] = None,
    factor: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Look at this label too; may be given several times.")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="Users and GPU types that are groups of their own.")] = 8,
    confidence: Annotated[float, typer.Option(metavar="P", help="Confidence of intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(metavar="N", help="Resamples of users, for intervals.")] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the resamples.")] = 0,
    page: PageFile = None,
    picture: PictureFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Tell when the tasks of a trace succeed or fail, and what goes with it."""
    from deep500.fleet.reading import read_outcomes
    from deep500.fleet.trace.observed import NothingSeenError
    from deep500.fleet.trace.report import report_trace

    check_outputs(paths, page=page, picture=picture)
    with ProgressLine(quiet) as line:
        line.tell("reading")
        table, read = read_outcomes(paths, format)
        try:
            report = report_trace(
                table,
                classic=classic,
                factors=factor or (),
                times_s=None if at is None else [3600.0 * hours for hours in at],
                confidence=confidence,
                top=top,
                resamples=resamples,
                seed=seed,
                tell=line.tell,
            )
        except NothingSeenError as error:
            raise NothingSeenError(f"{error}{_faults(read)}") from error
        line.tell("drawing")
        if page is not None:
            from deep500.fleet.trace.trace_page import trace_page

            trace_page(report, read).write(page)
        if picture is not None:
            _draw(report, picture)
    document = {"input": read.to_dict(), **report.document()}
    print_document(document, as_json, lambda: _show(report, read))
    print_written(as_json, page=page, picture=picture)
    return PASSED


def _faults(read: InputReport) -> str:
    """Return what was wrong with the input, where something was: it may be why nothing is left."""
    counts: dict[str, int] = {}
    for problem in read.problems:
        what = f"{problem.kind.value}: {problem.effect}" if problem.effect else problem.kind.value
        counts[what] = counts.get(what, 0) + problem.count
    told = "; ".join(f"{count:,} {what}" for what, count in counts.items())
    return f" Faults of the input: {told}." if told else ""


def _draw(report: TraceReport, path: str) -> None:
    """Draw the groups of the first factor; all tasks where there is none."""
    from pathlib import PurePath

    from deep500.core.files import write_atomically
    from deep500.fleet.trace.drawing import curves_figure
    from deep500.measure.rendering import rendered

    first = report.factors[0] if report.factors else None
    groups, title = ((report.whole,), "All tasks") if first is None else (first.groups, f"By {first.title}")
    write_atomically(path, rendered(lambda: curves_figure(groups, title), PurePath(path).suffix.lower()), "picture")


def _show(report: TraceReport, read: InputReport) -> None:
    from deep500.fleet.trace import wording

    print_input(read)
    tasks, users = wording.number_of(report.tasks, "task"), wording.number_of(report.users, "user")
    print(f"Seen running: {tasks} of {users}")
    print(f"By status: {wording.counted(report.statuses)}")
    print(f"Censored:  {wording.counted(report.censored)}")
    print(f"Left out:  {wording.counted(report.left_out)}")
    if report.unknown_gpus:
        print(f"GPUs not known of {report.unknown_gpus:,} tasks: their GPU time counts as 0")
    for name, why in report.absent.items():
        print(f"Not told by this trace: {name} ({why})")
    print()
    print_table(wording.group_rows([report.whole]))
    print()
    print_table(wording.share_rows([report.whole]))
    for factor in report.factors:
        print(f"\nBy {wording.name_text(factor.title)}\n{wording.test_text(factor)}")
        print_table(wording.group_rows(factor.groups))
        print()
        print_table(wording.share_rows(factor.groups))
    _show_models(report)
    if report.correlations:
        print("\nSpearman's rank correlations")
        print_table(wording.correlation_rows(report))
    if report.classic is not None:
        _show_classic(report.classic)
    print(f"\nIntervals: {report.settings.confidence:.0%}; resamples of users from seed {report.settings.seed}")
    for note in report.notes:
        print(f"Note: {note}")


def _show_models(report: TraceReport) -> None:
    from deep500.fleet.trace import wording

    for model in report.models:
        print(
            f"\nCox model of the rate of {'failing' if model.cause == 'failed' else 'succeeding'}: "
            f"{wording.number_of(model.tasks, 'task')}, {model.events:,} {model.cause}, "
            f"{wording.number_of(model.users, 'user')}"
        )
        print_table(wording.effect_rows(model, report.settings.confidence))
        if model.split_s is not None:
            print(f"Some effects change over time; before and after {wording.time_text(model.split_s)}:")
            print_table(wording.split_rows(model))
        for note in model.notes:
            print(f"Note: {note}")


def _show_classic(view: ClassicView) -> None:
    from deep500.fleet.trace import wording

    print("\nClassic view (as seed 004; what is wrong with it is below)")
    print(f"Tasks with a run time: {wording.counted(view.tasks)}; without: {wording.counted(view.without_time)}")
    print(f"Counted as failed: {wording.counted(view.counted_as_failed)}")
    if view.absent:
        print(f"Not told by this trace: {', '.join(view.absent)}")
    for rows in (wording.classic_tables(view), wording.classic_rows(view)):
        if len(rows) > 1:
            print()
            print_table(rows)
    print()
    for flaw in view.flaws:
        print(f"Flaw: {flaw}")
