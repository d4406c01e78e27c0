"""``deep500 fleet ci reduce``: which jobs are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_table
from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.ci_options import (
    HISTORY_HELP,
    BuildPatterns,
    Cut,
    Latest,
    Linkage,
    Merge,
    Only,
    Order,
    Seed,
    Support,
    TestPatterns,
    interval,
    print_rows,
    read_history,
    said_of_history,
)
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
from deep500.core.texts import counted

if TYPE_CHECKING:
    from deep500.fleet.ci.history import History
    from deep500.fleet.ci.reduction import Reduction
    from deep500.fleet.input_report import InputReport

__all__ = ["REDUCE_EXAMPLES", "reduce_command"]

REDUCE_EXAMPLES = f"""{HISTORY_HELP}
\b
Jobs are chosen from the oldest commits and judged by the others: which share of
the newly failing commits they find (a job fails that passed when last it had a
result), beside jobs chosen at random for the same cost. "not better than
random" is an answer. Methods, all of which are compared:
  greedy    again and again the job that finds most more failures for its cost
  layers    greedy, then a second job for each failure, a third ..., while the
            budget lasts
  exact     the most failures that any set within the budget finds
  clusters  the cheapest job of each cluster of deep500 fleet ci correlate

\b
Examples:
  deep500 fleet ci reduce history.tsv --budget 0.3 --keep 'cuda*'
  deep500 fleet ci reduce history.tsv --method exact --periodic 10 --page jobs.html
  deep500 fleet ci reduce history.tsv --budget 0.5 --method layers --aim new
  deep500 fleet ci reduce jobs/ --only tests --drop '*windows*' --json

\b
Exit code:
  0 done, whatever the answer is; 2 a mistake in the command, or nothing that
  jobs could be chosen by
"""


Budget = Annotated[float, typer.Option(metavar="SHARE", help="What the jobs may cost, of what all cost.")]
Keep = Annotated[
    list[str] | None, typer.Option(metavar="GLOB", help="Keep these jobs, whatever they cost; several times.")
]
Drop = Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Do not choose these jobs; several times.")]
Method = Annotated[
    str, typer.Option(metavar="NAME", help="Whose choice is proposed: greedy, layers, exact or clusters.")
]
Aim = Annotated[
    str, typer.Option(metavar="WHAT", help="Choose by all failing commits, or by the new ones: failing or new.")
]
Train = Annotated[float, typer.Option(metavar="SHARE", help="Choose from this share of commits, the oldest.")]
Periodic = Annotated[int | None, typer.Option(metavar="K", help="The other jobs still run at every K-th commit.")]
Draws = Annotated[int, typer.Option(metavar="N", help="Random choices to compare with.")]
TimeLimit = Annotated[float, typer.Option(metavar="SECONDS", help="Longest time of the exact method.")]


def reduce_command(
    paths: OutcomePaths,
    format: Format = None,
    budget: Budget = 0.3,
    keep: Keep = None,
    drop: Drop = None,
    method: Method = "greedy",
    aim: Aim = "failing",
    train: Train = 0.7,
    periodic: Periodic = None,
    draws: Draws = 1000,
    time_limit: TimeLimit = 30.0,
    merge: Merge = "none",
    only: Only = "all",
    order: Order = "time",
    latest: Latest = False,
    builds: BuildPatterns = None,
    tests: TestPatterns = None,
    linkage: Linkage = "complete",
    cut: Cut = 0.1,
    support: Support = 10,
    seed: Seed = 0,
    picture: PictureFile = None,
    page: PageFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Choose the jobs that find most failures for their cost, and say what that is worth."""
    from deep500.fleet.ci.reducing import reduce_jobs
    from deep500.fleet.ci.reduction import METHODS, ReductionPlan

    plan = ReductionPlan(
        budget=budget, keep=tuple(keep or ()), drop=tuple(drop or ()), aim=aim, train_share=train, draws=draws,
        methods=(method, *(name for name in METHODS if name != method)), periodic=periodic, time_limit_s=time_limit,
        linkage=linkage, cut=cut, least_support=support, seed=seed,
    )  # fmt: skip
    check_outputs(paths, picture=picture, page=page)
    with ProgressLine(quiet) as line:
        line.tell("reading")
        history, report, options = read_history(paths, format, merge, only, order, latest, builds, tests)
        found = reduce_jobs(history, plan, line.tell)
        line.tell("drawing")
        _write(history, found, report, picture, page)
    document = {"input": report.to_dict(), "history": history.to_dict(), **found.to_dict()}
    document["parameters"] = {**options, **document["parameters"]}
    print_document(document, as_json, lambda: _show(history, found, report))
    print_written(as_json, picture=picture, page=page)
    return PASSED


def _write(history: History, found: Reduction, report: InputReport, picture: str | None, page: str | None) -> None:
    from deep500.core.files import write_atomically
    from deep500.measure.rendering import picture_format, rendered

    if picture is not None:
        from deep500.fleet.ci.recall_picture import recall_picture

        write_atomically(picture, rendered(lambda: recall_picture(found), picture_format(picture)), "picture")
    if page is not None:
        _page(history, found, report).write(page)


METHOD_HEADER = ("method", "jobs", "cost", "finds", "at most", "held out: recall [95 %]", "random [95 % of choices]",
                 "difference [95 %]", "verdict")  # fmt: skip
JOB_HEADER = ("job", "", "cost of a run", "a commit", "failing commits", "alone", "found by kept", "flaky rate")


def _method_rows(found: Reduction) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, result in found.results.items():
        said, choice = result.evaluation, result.choice
        rows.append(
            (
                name, f"{int(choice.chosen.sum())}", f"{result.cost_share:.1%}",
                f"{choice.covered:,} of {found.problem.total:,}",
                "-" if choice.at_most is None else f"{choice.at_most:,}",
                interval(said.recall, said.recall_interval), interval(said.random_recall, said.random_interval),
                interval(said.difference, said.difference_interval, "+.2f"), said.verdict,
            )
        )  # fmt: skip
    return rows


def _job_rows(found: Reduction) -> list[tuple[str, ...]]:
    unit = "h" if found.costs.unit == "hours" else found.costs.unit
    return [
        (
            row["job"], row["state"], _cost(row["cost_of_a_run"], unit), _cost(row["cost_a_commit"], unit),
            f"{row['failing_commits']:,}",
            f"{row['failing_alone']:,}", "-" if row["found_by_kept"] is None else f"{row['found_by_kept']:.0%}",
            f"{row['flaky_rate']:.1%}",
        )
        for row in found.rows()
    ]  # fmt: skip


def _cost(value: float, unit: str) -> str:
    text = f"{value:.3g}"
    return f"{text} {unit.removesuffix('s') if text == '1' else unit}"


def _facts(found: Reduction) -> list[str]:
    """Return what the proposed choice is worth, in lines."""
    result, method = found.proposed, next(iter(found.results))
    said, unit = result.evaluation, found.costs.unit
    held_out = len(found.history.commits) - found.split
    what = f"{'newly ' if found.plan.aim == 'new' else ''}failing commit"
    lines = [
        f"Proposed ({method}): {len(found.chosen):,} of {counted(len(found.history.jobs), 'job')} for "
        f"{result.cost_share:.1%} of the cost (budget {found.plan.budget:.0%}); they find {result.choice.covered:,} of "
        f"{counted(found.problem.total, what)} of the first "
        f"{found.split:,}"
    ]
    if said.recall is not None:
        lines.append(
            f"Of the {held_out:,} commits after them, {said.commits:,} newly fail: {said.found:,} are found, a recall "
            f"of {interval(said.recall, said.recall_interval)}; jobs chosen at random for the same cost find "
            f"{interval(said.random_recall, said.random_interval)}: {said.verdict}"
        )
    lines.append(
        f"Saved there: {result.held_out_saved:,.1f} {unit} of {result.held_out_saved + result.held_out_cost:,.1f} "
        f"({result.saved_share:.1%})"
    )
    if result.delay is not None:
        delay = result.delay
        missed = (
            ""
            if delay.mean_missed_commits is None
            else f" ({delay.mean_missed_commits:.1f} for those that the chosen jobs miss)"
        )
        lines.append(
            f"With the other jobs once in {delay.every} commits: {delay.found:.1%} are found, after "
            f"{delay.mean_commits or 0:.2f} commits on average{missed}; {delay.passed_by:.1%} pass again unseen; "
            f"{delay.saved_share:.1%} of the cost is saved"
        )
    return lines


def _notes(found: Reduction) -> list[str]:
    notes = [f"{name}: {note}" for name, result in found.results.items() for note in result.choice.notes]
    return [*found.notes, *notes, *(f"{name} was not used: {why}" for name, why in found.skipped.items())]


def _show(history: History, found: Reduction, report: InputReport) -> None:
    print_input(report)
    for line in said_of_history(history):
        print(line)
    print()
    for line in _facts(found):
        print(line)
    print()
    print_table([METHOD_HEADER, *_method_rows(found)])
    print()
    print_rows(JOB_HEADER, _job_rows(found), "job")
    notes = _notes(found)
    if notes:
        print()
    for note in notes:
        print(f"Note: {note}")


def _page(history: History, found: Reduction, report: InputReport) -> Any:
    from deep500.fleet.ci.recall_picture import recall_picture
    from deep500.fleet.page import Page

    page = Page("Jobs that are enough")
    for line in _facts(found):
        page.paragraph(line)
    page.picture(lambda: recall_picture(found), "Newly failing commits that each choice finds, over what it costs")
    page.heading("Methods").table(METHOD_HEADER, _method_rows(found))
    page.heading("Jobs").table(JOB_HEADER, _job_rows(found))
    for note in _notes(found):
        page.paragraph(note)
    page.heading("History")
    for line in said_of_history(history):
        page.paragraph(line)
    return page.input(report)
