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
from deep500.core.texts import encodable, one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deep500.fleet.input_report import InputReport
    from deep500.fleet.outcome_table import OutcomeTable
    from deep500.fleet.page import Page

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

#: So many of the keys that fail are shown.
_MOST = 20


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
    document = {
        "input": report.to_dict(),
        "format": format,
        "statuses": _statuses(table),
        "keys": table.frame["key"].n_unique(),
        "groups": table.frame["group"].n_unique(),
        "labels": list(table.labels),
        "failing": _failing(table),
    }
    if output is not None:
        table.write(output)
    if page is not None:
        _page(table, report, document).write(page)
    print_document(document, as_json, lambda: _show(table, report, document))
    print_written(as_json, table=output, page=page)
    return PASSED


def _statuses(table: OutcomeTable) -> dict[str, int]:
    counted = table.frame.group_by("status").len().sort("status")
    return {str(status): int(count) for status, count in counted.rows()}


def _failing(table: OutcomeTable) -> list[dict[str, Any]]:
    """Return the keys with most failures."""
    import polars as pl

    counted = table.frame.group_by("key").agg(
        failed=(pl.col("status") == "failed").sum(),
        passed=(pl.col("status") == "passed").sum(),
        other=(~pl.col("status").is_in(["failed", "passed"])).sum(),
    )
    most = counted.filter(pl.col("failed") > 0).sort("failed", "key", descending=[True, False]).head(_MOST)
    return most.to_dicts()


def _shares(table: OutcomeTable) -> list[tuple[str, ...]]:
    return [(status, f"{count:,}", f"{count / len(table):.1%}") for status, count in _statuses(table).items()]


def _failing_rows(document: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (f"{row['failed']:,}", f"{row['passed']:,}", f"{row['other']:,}", _short(row["key"]))
        for row in document["failing"]
    ]


def _short(text: str) -> str:
    return encodable(one_line(text), "utf-8")[:120]


def _facts(document: dict[str, Any]) -> str:
    labels = f"; labels: {', '.join(map(_short, document['labels']))}" if document["labels"] else ""
    keys, groups = document["keys"], document["groups"]
    return f"{keys:,} {'key' if keys == 1 else 'keys'} in {groups:,} {'group' if groups == 1 else 'groups'}{labels}"


def _show(table: OutcomeTable, report: InputReport, document: dict[str, Any]) -> None:
    print_input(report)
    print_table([("status", "outcomes", "share"), *_shares(table)])
    if document["failing"]:
        print("\nWhat failed most often:")
        print_table([("failed", "passed", "other", "key"), *_failing_rows(document)])
    print(f"\n{_facts(document)}")


def _page(table: OutcomeTable, report: InputReport, document: dict[str, Any]) -> Page:
    from deep500.fleet.page import Page

    page = Page("Outcomes").paragraph(_facts(document))
    page.table(("status", "outcomes", "share"), _shares(table))
    page.picture(lambda: _bars(document["statuses"]), "Outcomes by status")
    if document["failing"]:
        page.heading("What failed most often")
        page.table(("failed", "passed", "other", "key"), _failing_rows(document))
    return page.input(report)


def _bars(statuses: dict[str, int]) -> Figure:
    """Draw a bar for each status."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 0.6 + 0.35 * len(statuses)), layout="constrained")
    axes = figure.add_subplot()
    names = list(statuses)[::-1]
    colours = {"passed": "#17692b", "failed": "#a31621"}
    bars = axes.barh(names, [statuses[name] for name in names], color=[colours.get(name, "#9a9a9a") for name in names])
    axes.bar_label(bars, [f"{statuses[name]:,}" for name in names], padding=3)
    axes.margins(x=0.15)
    axes.set_xlabel("outcomes")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
