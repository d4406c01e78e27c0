"""``deep500 fleet read``: outcomes of any format as one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_table
from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.options import (
    AsJson,
    Format,
    OutcomePaths,
    PageFile,
    check_outputs,
    print_document,
    print_input,
    print_written,
)

if TYPE_CHECKING:
    from deep500.fleet.input_report import InputReport
    from deep500.fleet.outcome_table import OutcomeTable

__all__ = ["READ_EXAMPLES", "read_command"]

READ_EXAMPLES = """\b
What is read, one format a file (--format NAME; by itself a file tells its own):
  deep500 list outcome_readers

\b
Faults of the input are named and counted, never dropped in silence: malformed
rows, empty files, bytes that are no UTF-8, duplicates, clocks that run
backwards, statuses that the format does not define.

\b
Examples:
  deep500 fleet read results/
  deep500 fleet read junit.xml jobs.json --output outcomes.jsonl
  deep500 fleet read trace/ --format pai --page trace.html

\b
Exit code:
  0 read, 2 a mistake in the command, or nothing that could be read
"""


def read_command(
    paths: OutcomePaths,
    format: Format = None,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the table: a .jsonl or .parquet file.")
    ] = None,
    page: PageFile = None,
    as_json: AsJson = False,
) -> int:
    """Read outcomes of any format, say what was wrong with them, and write them as one table."""
    from deep500.fleet.outcome_table import check_table_path
    from deep500.fleet.reading import read_outcomes

    if output is not None:
        check_table_path(output)
    check_outputs(paths, table=output, page=page)
    table, report = read_outcomes(paths, format)
    document = {"input": report.to_dict(), "statuses": _statuses(table), "labels": list(table.labels)}
    if output is not None:
        table.write(output)
    if page is not None:
        _page(table, report).write(page)
    print_document(document, as_json, lambda: _show(table, report))
    print_written(as_json, table=output, page=page)
    return PASSED


def _statuses(table: OutcomeTable) -> dict[str, int]:
    counted = table.frame.group_by("status").len().sort("status")
    return {str(status): int(count) for status, count in counted.rows()}


def _rows(table: OutcomeTable) -> list[tuple[str, ...]]:
    return [(status, f"{count:,}", f"{count / len(table):.1%}") for status, count in _statuses(table).items()]


def _facts(table: OutcomeTable) -> str:
    frame = table.frame
    labels = f"; labels: {', '.join(table.labels)}" if table.labels else ""
    return f"{frame['key'].n_unique():,} keys in {frame['group'].n_unique():,} groups{labels}"


def _show(table: OutcomeTable, report: InputReport) -> None:
    print_input(report)
    print_table([("status", "outcomes", "share"), *_rows(table)])
    print(f"\n{_facts(table)}")


def _page(table: OutcomeTable, report: InputReport) -> Any:
    from deep500.fleet.page import Page

    page = Page("Outcomes").paragraph(_facts(table))
    page.table(("status", "outcomes", "share"), _rows(table))
    return page.input(report)
