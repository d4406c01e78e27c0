"""``deep500 env``: the environment record, for people or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from deep500.measure.environment.record import EnvironmentRecord

__all__ = ["ENV_EXAMPLES", "environment_command"]

ENV_EXAMPLES = """\b
Examples:
  deep500 env
  deep500 env --json > environment.json
  deep500 env --strict && deep500 run digits_lenet

\b
Exit code:
  0 done, 1 an isolation check failed and --strict was given
"""

#: How long the noise of the machine is watched, in seconds; shorter, and a share of the CPU time says nothing.
_OBSERVATION_S = 0.5

#: Longest value that a table shows, in characters; the JSON record has all of it.
_LONGEST = 200


def environment_command(
    as_json: Annotated[bool, typer.Option("--json", help="Write the whole record as JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if an isolation check failed.")] = False,
) -> int:
    """Show the environment that measurements would record, and whether the machine is quiet."""
    from deep500.cli.console import print_error
    from deep500.measure.environment.isolation import IsolationError
    from deep500.measure.environment.record import record_environment

    record = record_environment(observation_s=_OBSERVATION_S)
    if as_json:
        print(json.dumps(record.to_dict(), indent=2, allow_nan=False))
    else:
        _render(record)
    if strict and record.failed:
        print_error(IsolationError(record.failed))
        return 1
    return 0


def _render(record: EnvironmentRecord) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for name, section in record.sections.items():
        rows = [
            (key, _text(value) if reason is None else f"{value}: {reason}") for key, value, reason in section.items()
        ]
        if "" in section.reasons:
            rows.append(("", f"unavailable: {section.reasons['']}"))
        _show(console, name, ("Field", "Value"), rows)
    noise = record.noise.to_dict()
    reasons = noise.pop("reasons")
    rows = [(key, f"{value}: {reasons[key]}" if key in reasons else _text(value)) for key, value in noise.items()]
    _show(console, "noise", ("Field", "Value"), rows)
    checks = [
        (check.name, check.verdict.value, check.reason, check.remedy if check in record.failed else "")
        for check in record.isolation
    ]
    _show(console, "isolation", ("Check", "Verdict", "Reason", "Remedy"), checks)


def _show(console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in rows:
        # What comes from files and variables is shown as it is: brackets are no markup, control characters do nothing.
        table.add_row(*(Text(_printable(cell)) for cell in row))
    console.print(table)
    console.print()


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return _short(", ".join(f"{key}={_text(item)}" for key, item in value.items() if item is not None) or "none")
    if isinstance(value, list):
        return _short(", ".join(map(_text, value)) or "none")
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
