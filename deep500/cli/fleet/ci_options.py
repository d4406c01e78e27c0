"""Options and output that the verbs of ``deep500 fleet ci`` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_table
from deep500.core.texts import counted

if TYPE_CHECKING:
    from deep500.fleet.ci.history import History
    from deep500.fleet.input_report import InputReport

__all__ = [
    "HISTORY_HELP",
    "BuildPatterns",
    "Cut",
    "Latest",
    "Linkage",
    "Merge",
    "Only",
    "Order",
    "Seed",
    "Support",
    "TestPatterns",
    "interval",
    "named_in_brief",
    "print_rows",
    "read_history",
    "said_of_history",
]

HISTORY_HELP = """\b
A history is a row for each commit (the group of an outcome) and a column for
each job (its key). Only passed and failed are results; cancelled and all else
is missing. Of reruns the last counts; where they differ the job was flaky.
"""

Merge = Annotated[
    str,
    typer.Option(metavar="HOW", help="none, or seed: merge jobs by name without _build, _test, _multigpu ..."),
]
Only = Annotated[str, typer.Option(metavar="WHICH", help="all, builds or tests; a test whose build failed is missing.")]
Order = Annotated[
    str, typer.Option(metavar="HOW", help="Commits by time, as in the file, or reversed (newest first in the file).")
]
Latest = Annotated[bool, typer.Option("--latest", help="Take only jobs that the last commit ran.")]
BuildPatterns = Annotated[
    list[str] | None,
    typer.Option("--build-jobs", metavar="GLOB", help="What builds are called [*_build, *-build, * / build*]."),
]
TestPatterns = Annotated[
    list[str] | None,
    typer.Option("--test-jobs", metavar="GLOB", help="What tests are called [*_test, *-test, * / test*]."),
]
Linkage = Annotated[str, typer.Option(metavar="NAME", help="Of clusters: complete, average, single, weighted or ward.")]
Cut = Annotated[float, typer.Option(metavar="SHARE", help="Cut clusters at this share of the largest distance.")]
Support = Annotated[
    int, typer.Option(metavar="N", help="Commits that two jobs need in common for a correlation; 2 takes all.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of what is drawn at random.")]


def read_history(
    paths: list[str],
    format: str | None,
    merge: str,
    only: str,
    order: str,
    latest: bool,
    builds: list[str] | None,
    tests: list[str] | None,
) -> tuple[History, InputReport, dict[str, Any]]:
    """Return the history of files, what was wrong with them, and the options as a document holds them."""
    from deep500.fleet.ci._job_names import BUILDS, TESTS
    from deep500.fleet.ci.history import history_of
    from deep500.fleet.reading import read_outcomes

    table, report = read_outcomes(paths, format)
    named = {"build_patterns": tuple(builds or BUILDS), "test_patterns": tuple(tests or TESTS)}
    history = history_of(table, merge=merge, only=only, order=order, latest=latest, **named)
    options = {"merge": merge, "only": only, "order": order, "latest": latest}
    return history, report, {**options, **{name: list(patterns) for name, patterns in named.items()}}


def said_of_history(history: History) -> list[str]:
    """Return what a history is, in lines."""
    said = history.to_dict()
    orders = {"time": "by time", "file": "as the files have them", "reversed": "the files' order reversed"}
    return [
        f"{counted(said['commits'], 'commit')} ({orders[history.order]}) x {counted(said['jobs'], 'job')}: "
        f"{counted(said['results'], 'result')}, {said['missing_share']:.1%} missing",
        f"{said['failed']:,} failed; {said['rerun']:,} were run again, and {said['flaky']:,} of these were flaky",
        *said["notes"],
    ]


def interval(value: float | None, ends: tuple[float, float] | None, form: str = ".2f") -> str:
    """Return an estimate with its interval, as tables show them."""
    if value is None:
        return "-"
    return format(value, form) + ("" if ends is None else f" [{ends[0]:{form}} .. {ends[1]:{form}}]")


#: Most rows of a table on a terminal, and most names in a cell of it.
_MOST_ROWS = 60


def print_rows(
    header: Sequence[str], rows: Sequence[Sequence[str]], what: str, where: str = "--json or --page"
) -> None:
    """Write the first rows of a table, and how many there are more.

    Args:
        header: The names of the columns.
        rows: The rows.
        what: What a row is, in the singular.
        where: Which options write all of them.
    """
    print_table([header, *rows[:_MOST_ROWS]])
    more = len(rows) - _MOST_ROWS
    if more > 0:
        print(f"... and {more:,} more {what}{'' if more == 1 else 's'} (all with {where})")


def named_in_brief(names: Sequence[str]) -> str:
    """Return names in a line, the first of them where they are many."""
    more = len(names) - _MOST_ROWS
    return ", ".join(names[:_MOST_ROWS]) + (f" and {more:,} more" if more > 0 else "")
