"""``deep500 lint``: which rules of benchmarking a result obeys."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from deep500.cli.exit_codes import FAILED, PASSED
from deep500.core.texts import escaped

if TYPE_CHECKING:
    from deep500.measure.rule import Finding

__all__ = ["LINT_EXAMPLES", "lint_command"]

LINT_EXAMPLES = """\b
Examples:
  deep500 lint result.json
  deep500 lint comparison.json --json
  deep500 bench model:lenet@pytorch --output result.json && deep500 lint result.json

\b
Exit code:
  0 no rule is broken, 1 at least one is, 2 the file is no result
"""

#: From so many columns on, the reason has a column of its own.
_WIDE = 120

#: How verdicts look in a terminal with colours.
_STYLES = {"obeyed": "green", "broken": "bold red", "not applicable": "dim"}


def lint_command(
    result: Annotated[
        str, typer.Argument(metavar="RESULT", help="A file of deep500 bench, deep500 compare or deep500 run.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Write the findings as JSON.")] = False,
) -> int:
    """Check a result against the twelve rules of benchmarking, and those of deep learning."""
    from deep500.measure.rule import RuleVerdict, check_rules, read_document

    findings = check_rules(read_document(result))
    is_broken = any(finding.verdict is RuleVerdict.BROKEN for finding in findings)
    if as_json:
        content = {"passed": not is_broken, "findings": [finding.to_dict() for finding in findings]}
        print(json.dumps(content, indent=2, allow_nan=False))
    else:
        _render(findings)
    return FAILED if is_broken else PASSED


def _render(findings: list[Finding]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    # In a narrow terminal the reason stands below the rule, where it has room.
    is_wide = console.width >= _WIDE
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in ("", "Rule", "Verdict") if is_wide else ("", "Rule and reason"):
        table.add_column(column, no_wrap=is_wide)
    if is_wide:
        table.add_column("Reason", overflow="fold")
    for finding in findings:
        # Names from the file are shown as they are: brackets are no markup, and control characters are escaped.
        number, rule, reason = (Text(escaped(text)) for text in (finding.number, finding.rule, finding.reason))
        verdict = Text(finding.verdict.value, _STYLES[finding.verdict.value])
        cells = [rule, verdict, reason] if is_wide else [Text.assemble(rule, ": ", verdict, "\n", reason)]
        table.add_row(number, *cells)
    console.print(table)
    counts = Counter(finding.verdict.value for finding in findings)
    console.print(", ".join(f"{counts[verdict]} {verdict}" for verdict in _STYLES))
