"""``deep500 fleet compat plan``: the cells of a matrix, those that are dropped, and what the rest may cost."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_table
from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.options import AsJson, PageFile, PictureFile, Quiet, check_outputs, print_document, print_written
from deep500.cli.progress_line import ProgressLine
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.fleet.compat.campaign import Campaign
    from deep500.fleet.page import Page

__all__ = ["PLAN_EXAMPLES", "plan_command"]

PLAN_EXAMPLES = """\b
A matrix:
  frameworks:
    onnxruntime: newest 3
    torch: {versions: ["2.12.0", "2.13.0"], adapter: pytorch}
  python: ["3.11", "3.12"]
  ranks: [1, 2]
  rules:
    - {framework: torch, version: "<2.13", python: ">=3.14", reason: no wheels}
  timeout_s: 300

\b
A combination is dropped, with the reason, when no machine of `pool` fits, the
package index does not offer it (asked through pip, with pip's own
configuration), a rule knows that it cannot work, or it is too old for `newest`.
What cannot be found out is said, and drops nothing.

\b
Examples:
  deep500 fleet compat plan matrix.yaml
  deep500 fleet compat plan matrix.yaml --campaign november --older august
  deep500 fleet compat plan matrix.yaml --offline --json

\b
Exit code:
  0 planned, 2 a mistake in the command or the matrix
"""


def plan_command(
    matrix: Annotated[str, typer.Argument(metavar="MATRIX", help="A YAML file that says what is combined.")],
    campaign: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write the campaign to this folder, from which it is run.")
    ] = None,
    older: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="An older campaign, or its outcomes, by which the cost is expected."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no package index.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the interval of the cost.")] = 0,
    page: PageFile = None,
    picture: PictureFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Expand a matrix, drop what need not be tried, each with its reason, and estimate the cost."""
    from deep500.fleet.compat.difference import outcomes_of
    from deep500.fleet.compat.matrix import Matrix
    from deep500.fleet.compat.planning import plan_campaign
    from deep500.fleet.outcome_table import OutcomeTable

    check_outputs([matrix], page=page, picture=picture)
    read = Matrix.read(matrix)
    known = [outcome for path in older or () for outcome in outcomes_of(path)[0].outcomes()]
    table = OutcomeTable.from_outcomes(known) if known else None
    with ProgressLine(quiet) as line:
        planned = plan_campaign(read, campaign, offline=offline, older=table, seed=seed, tell=line.tell)
    if campaign is not None:
        planned.write()
    if picture is not None:
        _draw(planned, picture)
    if page is not None:
        _page(planned).write(page)
    print_document(_document(planned, seed), as_json, lambda: _show(planned))
    if campaign is not None and not as_json:
        print(f"The campaign is in {shown_path(campaign)}; next: deep500 fleet compat run {shlex.quote(campaign)}")
    print_written(as_json, page=page, picture=picture)
    return PASSED


def _document(planned: Campaign, seed: int) -> dict[str, Any]:
    return {
        "campaign": planned.name,
        "matrix": planned.matrix,
        "matrix_hash": planned.matrix_hash,
        "cells": [cell.to_dict() for cell in planned.cells],
        "dropped": [dropped.to_dict() for dropped in planned.dropped],
        "estimate": planned.estimate,
        "notes": list(planned.notes),
        "seed": seed,
    }


_CELL_HEADER = ("cell", "GPUs", "at most", "requirements")
_DROPPED_HEADER = ("dropped", "by", "reason")


def _cell_rows(planned: Campaign) -> list[tuple[str, ...]]:
    return [
        (
            cell.cell_id,
            str(cell.gpus),
            f"{cell.environment_timeout_s + cell.timeout_s:,.0f} s",
            " ".join(cell.requirements),
        )
        for cell in planned.cells
    ]


def _dropped_rows(planned: Campaign) -> list[tuple[str, ...]]:
    return [(dropped.cell.cell_id, dropped.source, dropped.reason) for dropped in planned.dropped]


def _cost(planned: Campaign) -> list[str]:
    """Return what it may cost, a line for each kind."""
    said = planned.estimate
    most = said["at_most"]
    lines = [
        f"{said['cells']} cells in {said['environments']} environments",
        f"At most {most['job_hours']:.2f} job hours, {most['gpu_hours']:.2f} GPU hours",
    ]
    expected = said["expected"]
    if expected is None:
        return [*lines, f"Expected: {said['basis']}"]
    parts = []
    for key, unit in (("job_hours", "job hours"), ("gpu_hours", "GPU hours")):
        low, high = expected.get(f"{key}_interval", (None, None))
        parts.append(f"{expected[key]:.3f} {unit}" + (f" [{low:.3f} .. {high:.3f}]" if low is not None else ""))
    return [*lines, f"Expected {', '.join(parts)} by {said['basis']}"]


def _show(planned: Campaign) -> None:
    print_table([_CELL_HEADER, *_cell_rows(planned)])
    if planned.dropped:
        print()
        print_table([_DROPPED_HEADER, *_dropped_rows(planned)])
    print()
    for line in _cost(planned):
        print(line)
    for note in planned.notes:
        print(f"Note: {note}")


def _draw(planned: Campaign, path: str) -> None:
    from deep500.core.files import write_atomically
    from deep500.measure.rendering import picture_format, rendered

    write_atomically(path, rendered(lambda: _figure(planned), picture_format(path)), "picture")


def _figure(planned: Campaign) -> Any:
    from deep500.fleet.compat.matrix_picture import matrix_figure

    dropped = {item.cell: "dropped" for item in planned.dropped}
    return matrix_figure({**dropped, **dict.fromkeys(planned.cells, "planned")})


def _page(planned: Campaign) -> Page:
    from deep500.fleet.page import Page

    page = Page(f"Campaign {planned.name}: the plan")
    for line in (*_cost(planned), *(f"Note: {note}" for note in planned.notes)):
        page.paragraph(line)
    page.picture(lambda: _figure(planned), "Which cells are tried, and which are dropped.")
    page.heading("Cells").table(_CELL_HEADER, _cell_rows(planned))
    return page.heading("Dropped").table(_DROPPED_HEADER, _dropped_rows(planned))
