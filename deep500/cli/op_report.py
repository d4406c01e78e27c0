"""A check of operators on the screen: a table for each, and what the compiler said of those that do not compile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deep500.core.texts import escaped

if TYPE_CHECKING:
    from deep500.workloads._operator_check.report import CheckReport, OperatorReport

__all__ = ["show_operator_check"]

#: From so many columns on, details have a column of their own.
_WIDE = 110

#: Longest detail that is shown, in characters; the report's file has all.
_LONGEST_DETAIL = 500

#: How outcomes look in a terminal with colours.
_STYLES = {"passed": "green", "FAILED": "bold red", "not run": "dim"}


def show_operator_check(report: CheckReport) -> None:
    """Write what was found of every operator, and how many of them passed."""
    for operator in report.operators:
        _show(operator)
    failed = [operator.name for operator in report.operators if not operator.passed]
    count = len(report.operators)
    if failed:
        print(f"FAILED: {', '.join(map(escaped, failed))} ({len(failed)} of {count}).")
    else:
        print(f"{count} operator{'s' if count != 1 else ''} passed.")


def _show(operator: OperatorReport) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    is_wide = console.width >= _WIDE
    table = Table(title=Text(escaped(operator.title), style="bold"), title_justify="left", box=box.SIMPLE_HEAD)
    table.show_edge = table.pad_edge = False
    for column in ("In", "Check", "Outcome", "Detail") if is_wide else ("In", "Check and detail"):
        table.add_column(column, overflow="fold", no_wrap=column in ("In", "Outcome"))
    for section, check, outcome, detail in operator.rows():
        word = Text(outcome.value, _STYLES[outcome.value])
        told = Text(escaped(_shortened(detail)))
        if is_wide:
            table.add_row(section, Text(escaped(check)), word, told)
        else:
            head = f"{escaped(check)}: " if check else ""
            table.add_row(section, Text.assemble(head, word, "\n", told))
    console.print(table)
    if operator.compiler_output:
        said = "\n".join(map(escaped, operator.compiler_output.splitlines()))
        console.print(Text(f"\n{said}"), soft_wrap=True)  # unbroken, so that the command can be copied
    console.print()


def _shortened(text: str) -> str:
    half = _LONGEST_DETAIL // 2
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:half]} [...] {text[-half:]}"
