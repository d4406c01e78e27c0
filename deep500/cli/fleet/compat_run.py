"""``deep500 fleet compat run``: run the cells of a campaign that have no outcome yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.options import AsJson, PageFile, Quiet, check_outputs, print_document, print_written
from deep500.cli.progress_line import ProgressLine
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.fleet.compat.campaign import Campaign
    from deep500.fleet.compat.running import RunPlan

__all__ = ["RUN_EXAMPLES", "run_command"]

RUN_EXAMPLES = """\b
Cells that have an outcome are not run again (nor those whose job still waits or
runs); what was cancelled or left no word is. --rerun STATUS runs others again,
and keeps what the older attempt left.

\b
Where it runs:
  local     a pool of processes on this machine; the command waits for them
  slurm     an array of jobs for each shape of request; the command returns
  htcondor  a DAG; the command returns
Options of each: --option help=1 names them.

\b
Examples:
  deep500 fleet compat run november --on local --option jobs=2 --page november.html
  deep500 fleet compat run november --on slurm --generate-only
  deep500 fleet compat run november --rerun timeout --rerun unreachable

\b
Exit code:
  0 run or submitted, whatever came of it (see collect), 2 a mistake in the
  command, 130 interrupted: what ran is ended, what had ended is kept
"""


def run_command(
    campaign: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The folder of a campaign that was planned.")],
    on: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What runs the cells; by default what ran the campaign before, or local."),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of it; may be given several times.")
    ] = None,
    rerun: Annotated[
        list[str] | None, typer.Option(metavar="STATUS", help="Run cells of this status again; may be repeated.")
    ] = None,
    generate_only: Annotated[
        bool, typer.Option("--generate-only", help="Write the files that would be submitted, and submit nothing.")
    ] = False,
    page: PageFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run the cells of a campaign that have no outcome yet: here, or on a cluster."""
    from deep500.fleet.compat.campaign import Campaign
    from deep500.fleet.compat.running import run_campaign

    check_outputs([], page=page)
    read = Campaign.read(campaign)
    backend = on or read.backend or "local"
    given = _options(option or ())
    options = given if given or backend != read.backend else dict(read.options)
    try:
        with ProgressLine(quiet) as line:
            ran, plan = run_campaign(
                read, backend, options, rerun=rerun or (), generate_only=generate_only, tell=line.tell
            )
    except KeyboardInterrupt:
        typer.echo(
            f"Interrupted. What has come is kept; go on with: deep500 fleet compat run {_folder(read)}", err=True
        )
        raise
    if page is not None:
        from deep500.cli.fleet.compat_collect import campaign_page
        from deep500.fleet.compat.collecting import collect_campaign

        campaign_page(collect_campaign(ran)).write(page)
    print_document(_document(ran, plan), as_json, lambda: _show(ran, plan, generate_only))
    print_written(as_json, page=page)
    return PASSED


def _options(texts: list[str] | tuple[()]) -> dict[str, str]:
    from deep500.core.errors import FleetError
    from deep500.core.texts import shown

    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise FleetError(f"The option {shown(text)} is not accepted: give it as KEY=VALUE, such as jobs=2.")
        if name in found:
            raise FleetError(f"The option {shown(name)} is given twice; give it once.")
        found[name] = value
    return found


def _statuses(ran: Campaign) -> dict[str, tuple[str, str | None]]:
    from deep500.fleet.compat.running import outcomes_now

    return {key: (outcome.status, outcome.cause) for key, outcome in outcomes_now(ran)[0].items()}


def _document(ran: Campaign, plan: RunPlan) -> dict[str, Any]:
    return {
        "campaign": ran.name,
        "backend": ran.backend,
        "options": dict(ran.options),
        "begun": [cell.cell_id for cell in plan.cells],
        "done_before": [cell.cell_id for cell in plan.done],
        "active_before": [cell.cell_id for cell in plan.active],
        "now": {key: {"status": status, "cause": cause} for key, (status, cause) in _statuses(ran).items()},
    }


def _show(ran: Campaign, plan: RunPlan, generate_only: bool) -> None:
    from collections import Counter

    what = "written for" if generate_only else "begun by"
    print(f"{len(plan.cells)} cells {what} {ran.backend}; {len(plan.done)} have an outcome already", end="")
    print(f", {len(plan.active)} were under way" if plan.active else "")
    counted = Counter(status for status, _ in _statuses(ran).values())
    print(f"Now: {', '.join(f'{count} {status}' for status, count in sorted(counted.items())) or 'no cells'}")
    print(f"The files are in {shown_path(ran.scheduler_folder)}; next: deep500 fleet compat collect {_folder(ran)}")


def _folder(ran: Campaign) -> str:
    import os
    import shlex

    return shlex.quote(os.path.relpath(ran.folder))
