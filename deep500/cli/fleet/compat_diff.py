"""``deep500 fleet compat diff``: what differs between two campaigns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deep500.cli.console import print_table
from deep500.cli.exit_codes import FAILED, PASSED
from deep500.cli.fleet.options import AsJson, PageFile, check_outputs, print_document, print_input, print_written

if TYPE_CHECKING:
    from deep500.fleet.compat.difference import Difference
    from deep500.fleet.input_report import InputReport

__all__ = ["DIFF_EXAMPLES", "diff_command"]

DIFF_EXAMPLES = """\b
What changed:
  broken      it passed, and does not any more
  no verdict  it passed, and now it is missing or was cancelled
  status      another status, of a cell that did not pass
  cause       the same status for another reason
  repaired    it passes now
  new, gone   only one of the two has the cell

\b
Examples:
  deep500 fleet compat diff august november
  deep500 fleet compat diff august/outcomes.jsonl november --json

\b
Exit code:
  0 all that passed still does, 1 something that passed does not pass any more,
  2 a mistake in the command
"""


def diff_command(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The folder of a campaign, or a table of outcomes.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Another one.")],
    page: PageFile = None,
    as_json: AsJson = False,
) -> int:
    """Tell which cells have another outcome than before, which are new, and which are gone."""
    from deep500.fleet.compat.difference import compare, outcomes_of

    check_outputs([], page=page)
    before, old_report = outcomes_of(old)
    after, new_report = outcomes_of(new)
    difference = compare(before, after)
    reports = {"old": old_report, "new": new_report}
    if page is not None:
        _write_page(difference, reports, page)
    document = {**difference.to_dict(), "input": {side: report.to_dict() for side, report in reports.items()}}
    print_document(document, as_json, lambda: _show(difference, reports))
    print_written(as_json, page=page)
    return FAILED if difference.regressed else PASSED


_HEADER = ("cell", "change", "old", "new", "cause")


def _rows(difference: Difference) -> list[tuple[str, ...]]:
    rows = []
    for change in difference.changes:
        old, new = change.old, change.new
        causes = [side.cause or "none" if side is not None else "" for side in (old, new)]
        cause = f"{causes[0]} -> {causes[1]}" if change.kind == "cause" else causes[1] or causes[0]
        statuses = ["" if side is None else side.status for side in (old, new)]
        rows.append((change.cell, change.kind, *statuses, "" if cause == "none" else cause))
    return rows


def _said(difference: Difference) -> str:
    repeated = f"; of cells that ran several times the last counts ({difference.repeated} passed over)"
    lost = (
        "Something that passed does not pass any more."
        if difference.regressed
        else "All that passed and is there passes."
    )
    return (
        f"{len(difference.changes)} cells differ, {difference.same} do not"
        f"{repeated if difference.repeated else ''}. {lost}"
    )


def _show(difference: Difference, reports: dict[str, InputReport]) -> None:
    for report in reports.values():
        if report.problems:
            print_input(report)
    if difference.changes:
        print_table([_HEADER, *_rows(difference)])
        print()
    print(_said(difference))


def _write_page(difference: Difference, reports: dict[str, InputReport], path: str) -> None:
    from deep500.fleet.page import Page

    page = Page("What differs between two campaigns").paragraph(_said(difference))
    page.table(_HEADER, _rows(difference))
    for report in reports.values():
        page.input(report)
    page.write(path)
