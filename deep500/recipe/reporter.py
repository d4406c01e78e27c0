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

    def finished_runs(self, result: RecipeResult) -> None:
        """Called at the end of several runs, after each was told of; ``result.runs`` has what they came to."""


class SilentReporter:
    """Tells nobody."""

    def events(self, epochs: int) -> Sequence[Event]:
        """Return no listener."""
        return ()

    def started(self, result: RecipeResult) -> None:
        """Do nothing."""

    def finished(self, result: RecipeResult) -> None:
        """Do nothing."""

    def finished_runs(self, result: RecipeResult) -> None:
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
        if result.ranks is not None:
            count = result.ranks["count"]
            _write(console, f"{count} rank{'' if count == 1 else 's'}, scheme {result.ranks['scheme']}")
        if result.statistics.get("complete"):
            _write(console, f"The training has ended already, after {result.statistics['steps']} steps; its verdict:")
        elif result.resumed:
            last = result.resumed[-1]
            _write(console, f"Goes on from {last['checkpoint']}, after {last['step']} steps")

    def finished(self, result: RecipeResult) -> None:
        """Write where the time went, a line for each metric, why it fails whatever they are, and PASSED or FAILED."""
        console = self._console()
        for loss in (result.ranks or {}).get("losses", ()) if not self.quiet else ():
            _write(console, _lost(loss), style="yellow")
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

    def finished_runs(self, result: RecipeResult) -> None:
        """Write a table of the runs: their values, the median with its interval where there are enough, the verdict."""
        console, runs = self._console(), result.runs
        if runs is None:
            return
        titles = ("metric", *(f"seed {seed}" for seed in runs["seeds"]), "median", "")
        rows = [_runs_row(name, found) for name, found in runs["statistics"].items()]
        verdicts = ("", *(verdict_word(passed) for passed in runs["passed"]), "", "")
        if not self.quiet:
            _write(console, "")
            for row in _aligned([titles, *rows, verdicts]):
                _write(console, row)
        passed = sum(runs["passed"])
        word = verdict_word(result.passed)
        text = f"{word}: {passed} of {len(runs['passed'])} runs pass (accepted: {runs['rule']})"
        _write(console, text, style=_STYLES[word])

    def _console(self) -> Console:
        from rich.console import Console

        return Console(file=self.stream or sys.stdout, highlight=False)


def _lost(loss: dict[str, Any]) -> str:
    """Return what a result says of ranks that were lost, in one line."""
    count, is_one = len(loss["survivors"]), len(loss["lost"]) == 1
    ranks = f"{'Rank' if is_one else 'Ranks'} {', '.join(map(str, loss['lost']))}"
    return (
        f"{ranks} {'was' if is_one else 'were'} lost in step {loss['step']}, and {loss['samples_lost']} samples of it; "
        f"{count} rank{' goes' if count == 1 else 's go'} on with minibatches of {loss['batch_size']}"
    )


def _runs_row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    """Return one metric's line of the table of several runs."""
    interval = found["interval"]
    said = str(found["note"])
    if interval is not None:
        percent = f"{100 * interval['confidence']:.6g} %"
        said = f"[{interval['low']:.6g}, {interval['high']:.6g}] ({percent} interval of the median)"
    return (name, *(f"{value:.6g}" for value in found["values"]), f"{found['median']:.6g}", said)


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
