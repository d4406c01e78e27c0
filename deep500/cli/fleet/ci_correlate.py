"""``deep500 fleet ci correlate``: which jobs pass and fail together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    named_in_brief,
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
    from deep500.fleet.ci.correlating import Correlation
    from deep500.fleet.ci.history import History
    from deep500.fleet.input_report import InputReport

__all__ = ["CORRELATE_EXAMPLES", "correlate_command"]

CORRELATE_EXAMPLES = f"""{HISTORY_HELP}
\b
The correlation of two jobs is Pearson's of 1 and 0 over the commits at which
both have a result (phi). Jobs whose rows of it are alike are a cluster. Jobs
that never failed, or never passed, have no correlation and are named.

\b
Examples:
  deep500 fleet ci correlate history.tsv
  deep500 fleet ci correlate history.tsv --merge seed --latest --support 2
  deep500 fleet ci correlate jobs/ --only tests --picture tests.svg --page tests.html
  deep500 fleet ci correlate history.tsv --linkage average --cut 0.3 --json

\b
Exit code:
  0 done, 2 a mistake in the command, or nothing that can be correlated
"""


def correlate_command(
    paths: OutcomePaths,
    format: Format = None,
    merge: Merge = "none",
    only: Only = "all",
    order: Order = "time",
    latest: Latest = False,
    builds: BuildPatterns = None,
    tests: TestPatterns = None,
    linkage: Linkage = "complete",
    cut: Cut = 0.1,
    support: Support = 10,
    pairs: Annotated[int, typer.Option(metavar="N", help="Show so many pairs that go together most.")] = 10,
    seed: Seed = 0,
    picture: PictureFile = None,
    page: PageFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Show which jobs pass and fail together: correlations, clusters and a heat map."""
    from deep500.fleet.ci.correlating import correlate

    check_outputs(paths, picture=picture, page=page)
    with ProgressLine(quiet) as line:
        line.tell("reading")
        history, report, options = read_history(paths, format, merge, only, order, latest, builds, tests)
        line.tell(f"correlating {len(history.jobs):,} jobs")
        found = correlate(history, linkage=linkage, cut=cut, least_support=support, pairs=pairs, seed=seed)
        line.tell("drawing")
        _write(history, found, report, picture, page)
    document = {"input": report.to_dict(), "history": history.to_dict(), **found.to_dict()}
    document["parameters"] = {**options, **document["parameters"]}
    print_document(document, as_json, lambda: _show(history, found, report))
    print_written(as_json, picture=picture, page=page)
    return PASSED


def _write(history: History, found: Correlation, report: InputReport, picture: str | None, page: str | None) -> None:
    from deep500.core.files import write_atomically
    from deep500.measure.rendering import picture_format, rendered

    if picture is not None:
        from deep500.fleet.ci.heat_map import heat_map

        write_atomically(picture, rendered(lambda: heat_map(found), picture_format(picture)), "picture")
    if page is not None:
        _page(history, found, report).write(page)


JOBS = ("no.", "cluster", "job", "results", "failed", "rerun", "flaky", "flaky rate")
PAIRS = ("phi [95 %]", "commits", "both failed", "one failed", "jobs")


def _job_rows(found: Correlation) -> list[tuple[str, ...]]:
    return [
        (
            str(row["number"]), str(row["cluster"]), row["job"], f"{row['results']:,}", f"{row['failed']:,}",
            f"{row['rerun']:,}", f"{row['flaky']:,}", f"{row['flaky_rate']:.1%}",
        )
        for row in found.rows()
    ]  # fmt: skip


def _pair_rows(found: Correlation) -> list[tuple[str, ...]]:
    return [
        (
            interval(pair.phi, (pair.low, pair.high)), f"{pair.support:,}", f"{pair.both_failed:,}",
            f"{pair.one_failed:,}", f"{pair.first}, {pair.second}",
        )
        for pair in found.pairs
    ]  # fmt: skip


def _facts(history: History, found: Correlation) -> list[str]:
    groups = found.groups()
    many = [group for group in groups if len(group) > 1]
    count = len(found.history.jobs)
    lines = [
        f"{count:,} of {counted(len(history.jobs), 'job')} have a correlation: {counted(len(groups), 'cluster')}, "
        f"{len(many):,} of them with several jobs ({sum(map(len, many)):,} jobs); "
        f"{found.options['linkage']} linkage, cut at {found.options['cut']:g} of the largest distance"
    ]
    if found.undefined:
        lines.append(
            f"{found.undefined:,} of {count * (count - 1) // 2:,} pairs have no correlation (fewer than "
            f"{found.options['least_support']} commits in common, or no change in them): taken as 0 where rows are "
            "compared"
        )
    return lines


def _left_out(found: Correlation) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for job, reason in found.left_out.items():
        reasons.setdefault(reason, []).append(job)
    return reasons


def _show(history: History, found: Correlation, report: InputReport) -> None:
    print_input(report)
    for line in said_of_history(history):
        print(line)
    print()
    for line in _facts(history, found):
        print(line)
    print()
    print_rows(JOBS, _job_rows(found), "job")
    if found.pairs:
        print("\nPairs that go together most:")
        print_rows(PAIRS, _pair_rows(found), "pair")
    if found.left_out:
        print("\nWithout a correlation:")
        rows = [(why, f"{len(jobs):,}", named_in_brief(jobs)) for why, jobs in _left_out(found).items()]
        print_rows(("why", "jobs", "which"), rows, "reason")


def _page(history: History, found: Correlation, report: InputReport) -> Any:
    from deep500.fleet.ci.heat_map import heat_map
    from deep500.fleet.page import Page

    page = Page("Jobs that pass and fail together")
    for line in [*said_of_history(history), *_facts(history, found)]:
        page.paragraph(line)
    page.picture(lambda: heat_map(found), "Correlation of all pairs of jobs, in the order of the clusters")
    page.heading("Jobs").table(JOBS, _job_rows(found))
    if found.pairs:
        page.heading("Pairs that go together most").table(PAIRS, _pair_rows(found))
    if found.left_out:
        rows = [(why, f"{len(jobs):,}", ", ".join(jobs)) for why, jobs in _left_out(found).items()]
        page.heading("Without a correlation").table(("why", "jobs", "which"), rows)
    return page.input(report)
