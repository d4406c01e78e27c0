"""Who is told of a run: a reporter. The one here writes for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from deep500.core.event import Event
from deep500.core.texts import encodable, escaped, shown_path
from deep500.recipe.result import RecipeResult
from deep500.recipe.verdict import verdict_rows, verdict_word

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ConsoleReporter", "Reporter", "SilentReporter"]

#: What is told of the time, and the regions that it is the time of.
_TIMINGS = {
    "imports": ["imports"],
    "data": ["data"],
    "build": ["build"],
    "training": ["training", "training set"],
    "tests": ["training", "test set"],
}

_STYLES = {"PASSED": "bold green", "FAILED": "bold red"}


class Reporter(Protocol):
    """Is told of a run."""

    def events(self, epochs: int) -> Sequence[Event]:
        """Return the listeners of the training that show its progress."""

    def started(self, result: RecipeResult) -> None:
        """Called when all is built, right before the training."""

    def finished(self, result: RecipeResult) -> None:
        """Called at the end, also of a run that was interrupted (``result.complete`` is false then)."""


class SilentReporter:
    """Tells nobody."""

    def events(self, epochs: int) -> Sequence[Event]:
        """Return no listener."""
        return ()

    def started(self, result: RecipeResult) -> None:
        """Do nothing."""

    def finished(self, result: RecipeResult) -> None:
        """Do nothing."""


class ConsoleReporter:
    """Writes what runs and the verdict to the standard output, and a progress bar where that is a terminal."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        """Set what is told.

        Args:
            quiet: Tell nothing but the verdict.
            stream: Where to, instead of the standard output.
        """
        self.quiet = quiet
        self.stream = stream

    def events(self, epochs: int) -> Sequence[Event]:
        """Return the progress bar, unless quiet."""
        from deep500.training.trainer import default_trainer_events

        return () if self.quiet else default_trainer_events(epochs)

    def started(self, result: RecipeResult) -> None:
        """Write recipe, framework, device, seed and configuration."""
        if self.quiet:
            return
        console = self._console()
        path = f" ({shown_path(result.recipe['path'])})" if result.recipe["path"] else ""
        _write(console, f"Recipe {result.recipe['name']}{path}", style="bold")
        _write(
            console,
            f"{result.framework['name']} {result.framework['version']} on {result.device}, "
            f"seed {result.seeds['recipe']}, configuration {result.configuration_hash[:12]}",
        )

    def finished(self, result: RecipeResult) -> None:
        """Write where the time went, a line for each metric, why it fails whatever they are, and PASSED or FAILED."""
        console = self._console()
        timings = _timings(result)
        if timings and not self.quiet:
            _write(console, timings)
        rows = [(r.name, r.value, r.acceptable, r.margin, r.verdict) for r in verdict_rows(result)]
        if rows and not self.quiet:
            _write(console, "")
        for row in _aligned([("metric", "value", "acceptable", "margin", ""), *rows] if rows else []):
            _write(console, row, style=_STYLES.get(row.rpartition(" ")[2], ""))
        if result.failure is not None:
            _write(console, result.failure, style="red")
        word = verdict_word(result.passed)
        incomplete = "" if result.complete else " (incomplete)"
        _write(console, f"{word}{incomplete}", style=_STYLES[word])

    def _console(self) -> Console:
        from rich.console import Console

        return Console(file=self.stream or sys.stdout, highlight=False)


def _timings(result: RecipeResult) -> str:
    """Return where the time went, in one line."""
    rows = result.regions.get("rows", [])
    times = {name: row["total_s"] for name, path in _TIMINGS.items() for row in rows if row["path"] == path}
    return ", ".join(f"{name} {time_s:.1f} s" for name, time_s in times.items())


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _write(console: Console, text: str, **options: Any) -> None:
    # Soft wrapping leaves the lines whole: a pipe has no width, and a terminal wraps by itself.
    text = encodable(escaped(text), getattr(console.file, "encoding", None))
    console.print(text, markup=False, emoji=False, soft_wrap=True, **options)
