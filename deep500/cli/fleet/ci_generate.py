"""``deep500 fleet ci generate``: a made-up history, to try the other verbs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.ci_options import Seed, print_rows
from deep500.cli.fleet.options import AsJson, PageFile, check_outputs, print_document, print_written
from deep500.core.texts import counted

if TYPE_CHECKING:
    from deep500.fleet.ci.generating import PlantedHistory
    from deep500.fleet.outcome_table import OutcomeTable
    from deep500.fleet.page import Page

__all__ = ["GENERATE_EXAMPLES", "generate_command"]

GENERATE_EXAMPLES = """\b
Each group of jobs breaks by itself and stays broken for some commits; its jobs
always fail together, so one of each group tells all.

\b
Examples:
  deep500 fleet ci generate history.jsonl
  deep500 fleet ci generate history.jsonl --groups 6 --flaky 0.01 --missing 0.05 --seed 7
  deep500 fleet ci reduce history.jsonl --budget 0.5

\b
Exit code:
  0 written, 2 a mistake in the command
"""


def generate_command(
    output: Annotated[str, typer.Argument(metavar="FILE", help="Write the outcomes: a .jsonl or .parquet file.")],
    commits: Annotated[int, typer.Option(metavar="N", help="Commits.")] = 400,
    groups: Annotated[int, typer.Option(metavar="N", help="Groups of several jobs.")] = 4,
    jobs_per_group: Annotated[int, typer.Option(metavar="N", help="Jobs of each of them.")] = 4,
    singletons: Annotated[int, typer.Option(metavar="N", help="Jobs that fail by themselves.")] = 4,
    idle: Annotated[int, typer.Option(metavar="N", help="Jobs that never fail.")] = 2,
    break_rate: Annotated[float, typer.Option(metavar="RATE", help="How often a group breaks, a commit.")] = 0.03,
    mean_life: Annotated[float, typer.Option(metavar="N", help="Commits that it stays broken on average.")] = 3.0,
    flaky: Annotated[float, typer.Option(metavar="RATE", help="Failures that pass when they are run again.")] = 0.0,
    missing: Annotated[float, typer.Option(metavar="RATE", help="How often a job is cancelled.")] = 0.0,
    seed: Seed = 0,
    page: PageFile = None,
    as_json: AsJson = False,
) -> int:
    """Make up a history with jobs that tell the same, and say what is true of it."""
    from deep500.fleet.ci.generating import generate_history
    from deep500.fleet.outcome_table import check_table_path

    check_table_path(output)
    check_outputs([], history=output, page=page)
    parameters: dict[str, Any] = {
        "commits": commits,
        "groups": groups,
        "jobs_per_group": jobs_per_group,
        "singletons": singletons,
        "idle": idle,
        "break_rate": break_rate,
        "mean_life": mean_life,
        "flaky_rate": flaky,
        "missing_rate": missing,
        "seed": seed,
    }
    table, truth = generate_history(**parameters)
    table.write(output)
    if page is not None:
        _page(table, truth).write(page)
    document = {"parameters": parameters, "outcomes": len(table), "truth": truth.to_dict()}
    print_document(document, as_json, lambda: _show(len(table), truth))
    print_written(as_json, history=output, page=page)
    return PASSED


def _show(count: int, truth: PlantedHistory) -> None:
    print(f"{_facts(count, truth)}\n")
    print_rows(_HEADER, _rows(truth), "group", "--json and --page")
    print()


_HEADER = ("breaks", "cheapest", "cost", "fail together")


def _facts(count: int, truth: PlantedHistory) -> str:
    return f"{counted(count, 'outcome')} of {counted(len(truth.costs), 'job')}; never failing: {len(truth.idle):,}"


def _rows(truth: PlantedHistory) -> list[tuple[str, ...]]:
    return [
        (str(breaks), cheapest, f"{truth.costs[cheapest]:g} h", ", ".join(group))
        for group, cheapest, breaks in zip(truth.groups, truth.cheapest, truth.breaks, strict=True)
    ]


def _page(table: OutcomeTable, truth: PlantedHistory) -> Page:
    from deep500.fleet.ci.history import history_of
    from deep500.fleet.ci.history_map import history_map
    from deep500.fleet.page import Page

    page = Page("A made-up history").paragraph(_facts(len(table), truth))
    page.picture(lambda: history_map(history_of(table)), "What came of each job at each commit.")
    return page.heading("What is true of it").table(_HEADER, _rows(truth))
