"""``deep500 fleet compat collect``: what has come back of a campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_table
from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.options import (
    AsJson,
    PageFile,
    PictureFile,
    check_outputs,
    print_document,
    print_input,
    print_written,
)

if TYPE_CHECKING:
    from deep500.fleet.compat.collecting import Collected
    from deep500.fleet.page import Page

__all__ = ["COLLECT_EXAMPLES", "campaign_page", "collect_command"]

COLLECT_EXAMPLES = """\b
May be called at any time, also when what submitted the jobs is gone. It writes
outcomes.jsonl into the campaign, which the other verbs of deep500 fleet read.

\b
What came of a cell:
  passed       all stages went well
  failed       a stage after the environment failed, or the job died in it
  environment  the packages do not fit together, or cannot be installed
  timeout      a time limit ended it, in the stage that is named
  no_match     no machine took it: refused, or pending until the deadline
  unreachable  the machine was lost, or ran nothing
  cancelled    someone ended it
  missing      it waits, runs, or left no word

\b
Examples:
  deep500 fleet compat collect november
  deep500 fleet compat collect november --page november.html
  deep500 fleet compat collect november --json

\b
Exit code:
  0 collected, 2 a mistake in the command, or no campaign there
"""


def collect_command(
    campaign: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The folder of a campaign.")],
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the table here, too: a .jsonl or .parquet file.")
    ] = None,
    page: PageFile = None,
    picture: PictureFile = None,
    as_json: AsJson = False,
) -> int:
    """Read what has come back of a campaign, and tell how far each cell came and why it ended."""
    from deep500.fleet.compat.campaign import Campaign
    from deep500.fleet.compat.collecting import collect_campaign
    from deep500.fleet.outcome_table import OutcomeTable, check_table_path

    if output is not None:
        check_table_path(output)
    check_outputs([], table=output, page=page, picture=picture)
    collected = collect_campaign(Campaign.read(campaign))
    if output is not None:
        OutcomeTable.from_outcomes(collected.outcomes).write(output)
    if picture is not None:
        _draw(collected, picture)
    if page is not None:
        campaign_page(collected).write(page)
    print_document(collected.to_dict(), as_json, lambda: _show(collected))
    print_written(as_json, table=output, page=page, picture=picture)
    return PASSED


_HEADER = ("cell", "status", "stages", "seconds", "cause")
_MARKS = {"ok": "+", "skipped": "-", "failed": "x", "running": ">", "": "."}


def _rows(collected: Collected) -> list[tuple[str, ...]]:
    return [
        (
            outcome.key,
            outcome.status,
            "".join(_MARKS[went] for went in collected.stages[outcome.key].values()),
            "" if outcome.duration_s is None else f"{outcome.duration_s:,.1f}",
            outcome.cause or "",
        )
        for outcome in collected.outcomes
    ]


def _legend() -> str:
    from deep500.fleet.compat.job_record import STAGES

    return f"stages: {', '.join(STAGES)}; + ok, - skipped, x failed, > running, . not reached"


def _counted(collected: Collected) -> str:
    from collections import Counter

    counts = Counter(outcome.status for outcome in collected.outcomes)
    said = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    return f"{collected.campaign.name}: {said or 'no cells'}; {len(collected.campaign.dropped)} dropped by the plan"


def _show(collected: Collected) -> None:
    if collected.report.problems:
        print_input(collected.report)
    print_table([_HEADER, *_rows(collected)])
    print(f"\n{_legend()}\n{_counted(collected)}")


def _figure(collected: Collected) -> Any:
    from deep500.fleet.compat.matrix_picture import matrix_figure

    cells = {cell.cell_id: cell for cell in collected.campaign.cells}
    return matrix_figure({cells[outcome.key]: outcome.status for outcome in collected.outcomes})


def _draw(collected: Collected, path: str) -> None:
    from deep500.core.files import write_atomically
    from deep500.measure.rendering import picture_format, rendered

    write_atomically(path, rendered(lambda: _figure(collected), picture_format(path)), "picture")


def campaign_page(collected: Collected) -> Page:
    """Return the page of a campaign: what came of each cell, how far it came, and what the plan dropped."""
    from deep500.fleet.page import Page

    page = Page(f"Campaign {collected.campaign.name}").paragraph(_counted(collected))
    page.picture(lambda: _figure(collected), "What came of each cell; where there is none the plan dropped it.")
    page.heading("Cells").table(_HEADER, _rows(collected)).paragraph(_legend())
    details = [
        (outcome.key, stage, went, collected.details[outcome.key][stage])
        for outcome in collected.outcomes
        for stage, went in collected.stages[outcome.key].items()
        if went
    ]
    page.heading("Stages").table(("cell", "stage", "went", "detail"), details)
    if collected.campaign.dropped:
        dropped = [(item.cell.cell_id, item.source, item.reason) for item in collected.campaign.dropped]
        page.heading("Dropped by the plan").table(("cell", "by", "reason"), dropped)
    return page.input(collected.report)
