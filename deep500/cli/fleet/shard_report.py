"""``deep500 fleet shard report``: what tests declare, what they use, and what is lost."""

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
    PictureFile,
    check_outputs,
    print_document,
    print_input,
    print_written,
)
from deep500.core.texts import counted
from deep500.fleet.shard.wording import duration

if TYPE_CHECKING:
    from deep500.fleet.input_report import InputReport
    from deep500.fleet.shard.gpu_report import GpuReport, GpuRow, LostTest

__all__ = ["REPORT_EXAMPLES", "report_command"]

REPORT_EXAMPLES = """\b
What is read: outcomes of tests, as pytest --junitxml writes them where Deep500
is installed: @pytest.mark.gpus(n) declares, and what a test really took is seen
while it runs. What was used counts, not what was declared.

\b
Examples:
  deep500 fleet shard report junit/
  deep500 fleet shard report junit/ history.jsonl --max-gpus 2 --page gpus.html

\b
Exit code:
  0 told, 2 a mistake in the command, or nothing that could be read
"""

Row = tuple[str, ...]


def report_command(
    paths: OutcomePaths,
    format: Format = None,
    max_gpus: Annotated[
        float | None, typer.Option(metavar="N", help="Also tell what would be lost with N GPUs a runner.")
    ] = None,
    page: PageFile = None,
    picture: PictureFile = None,
    as_json: AsJson = False,
) -> int:
    """Tell how many GPUs tests declare and use, and what is lost where there are fewer."""
    from deep500.fleet.reading import read_outcomes
    from deep500.fleet.shard.gpu_report import gpu_report

    check_outputs(paths, page=page, picture=picture)
    table, report = read_outcomes(paths, format)
    found = gpu_report(table, max_gpus)
    print_document({"input": report.to_dict(), **found.to_dict()}, as_json, lambda: _show(found, report))
    _write(found, report, page, picture)
    print_written(as_json, page=page, picture=picture)
    return PASSED


def _show(found: GpuReport, report: InputReport) -> None:
    print_input(report)
    for title, rows in _tables(found):
        print(f"{title}:")
        print_table(rows)
        print()
    print("\n".join(_facts(found)))


def _tables(found: GpuReport) -> list[tuple[str, list[Row]]]:
    """Return the tables that hold something."""
    tables = [
        ("By what tests declare", _rows(found.declared)),
        ("By what counts: what they used, where that was seen", _rows(found.used)),
    ]
    for title, tests in (
        ("Over-declared: never used as many", found.over_declared),
        ("Under-declared: used more", found.under_declared),
    ):
        if tests:
            rows = [(test, f"{declared:g}", f"{used:g}") for test, declared, used in tests]
            tables.append((title, [("test", "declared", "used"), *rows]))
    if found.lost:
        tables.append(("Lost: skipped since GPUs lacked", _lost(found.lost)))
    if found.would_be_lost and found.max_gpus is not None:
        tables.append((f"Would be lost with {_gpus(found.max_gpus)}", _lost(found.would_be_lost)))
    return tables


def _gpus(count: float) -> str:
    return "1 GPU" if count == 1 else f"{count:g} GPUs"


def _facts(found: GpuReport) -> list[str]:
    total = sum(row.tests for row in found.used)
    facts = [f"It was seen what {found.seen:,} of {counted(total, 'test')} {'uses' if total == 1 else 'use'}."]
    if found.not_collected:
        groups = len({group for group, _ in found.not_collected})
        names = ", ".join(sorted({what for _, what in found.not_collected})[:3])
        facts.append(
            f"Not collected in {counted(groups, 'group')}: {counted(len(found.not_collected), 'error')}, such as "
            f"{names}. Which tests are lost there is not known."
        )
    if found.lost:
        were = "was" if len(found.lost) == 1 else "were"
        share = f"{len(found.lost) / total:.1%}"
        facts.append(f"{counted(len(found.lost), 'test')} ({share}) {were} skipped since GPUs lacked.")
    if found.max_gpus is not None:
        lost = found.would_be_lost
        failures, seconds = sum(test.failures for test in lost), sum(test.seconds or 0.0 for test in lost)
        facts.append(
            f"With {_gpus(found.max_gpus)} {len(lost):,} of {counted(total, 'test')} "
            f"({len(lost) / max(total, 1):.1%}) would be lost, {duration(seconds)} of running; they failed "
            f"{counted(failures, 'time')}. Of {counted(found.failing_groups, 'group')} with a failure, "
            f"{found.missed_groups:,} would have looked well."
        )
    return facts


def _rows(rows: tuple[GpuRow, ...]) -> list[Row]:
    return [
        ("GPUs", "tests", "executed", "lost", "time", "failures"),
        *(
            (
                "unknown" if row.gpus is None else f"{row.gpus:g}",
                f"{row.tests:,}",
                f"{row.executed:,}",
                f"{row.lost:,}",
                duration(row.seconds),
                f"{row.failures:,}",
            )
            for row in rows
        ),
    ]


def _lost(tests: tuple[LostTest, ...]) -> list[Row]:
    return [
        ("test", "GPUs", "skipped in groups", "time where it ran", "runs", "failures"),
        *(
            (t.test, f"{t.gpus:g}", f"{t.groups:,}", duration(t.seconds), f"{t.runs:,}", f"{t.failures:,}")
            for t in tests
        ),
    ]


def _write(found: GpuReport, report: InputReport, page: str | None, picture: str | None) -> None:
    if page is None and picture is None:
        return
    from deep500.core.files import write_atomically
    from deep500.fleet.page import Page
    from deep500.fleet.shard.pictures import draw_needs
    from deep500.measure.rendering import picture_format, rendered

    def draw() -> Any:
        return draw_needs(found)

    if picture is not None:
        write_atomically(picture, rendered(draw, picture_format(picture)), "picture")
    if page is not None:
        made = Page("How many GPUs tests need")
        for fact in _facts(found):
            made.paragraph(fact)
        made.picture(draw, "Tests by the GPUs that they declare and use")
        for title, (header, *rows) in _tables(found):
            made.heading(title).table(header, rows)
        made.input(report).write(page)
