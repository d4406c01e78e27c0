"""What the verbs of ``deep500 fleet shard`` read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from deep500.fleet.input_report import InputReport
    from deep500.fleet.outcome_table import OutcomeTable
    from deep500.fleet.shard.cases import Case

__all__ = [
    "Configuration",
    "CountedGpus",
    "Environment",
    "Need",
    "SplitOver",
    "Unknown",
    "read_cases",
    "unknown_rule",
]

Environment = Annotated[
    str, typer.Option(metavar="PATTERN", help="Of recorded seconds: the builds that are wanted (* and ? match).")
]
Configuration = Annotated[
    str, typer.Option(metavar="PATTERN", help="Of recorded seconds: the test configurations that are wanted.")
]
Need = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN=N", help="Tests that fit need N GPUs; may be given several times, the last counts."),
]
CountedGpus = Annotated[
    str, typer.Option(metavar="used|declared", help="What counts as a test's need where its runs tell both.")
]
Unknown = Annotated[
    str, typer.Option(metavar="median|max|SECONDS", help="What a test takes whose duration is unknown.")
]
SplitOver = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Divide files that take longer: by tests, else evenly.")
]


def read_cases(
    paths: list[str],
    format: str | None,
    environment: str,
    configuration: str,
    needs: list[str] | None,
    count: str,
) -> tuple[list[tuple[str, list[Case]]], InputReport, OutcomeTable | None]:
    """Read recorded seconds or outcomes.

    Returns:
        The cases of each configuration with its name, what was read, and the outcomes where they are that.

    Raises:
        FleetError: Nothing can be read, both are given, or ``count`` is neither word.
    """
    from deep500.core.errors import FleetError
    from deep500.fleet.input_report import InputReport
    from deep500.fleet.shard.cases import Needs, cases_of_outcomes, cases_of_times
    from deep500.fleet.shard.test_times import looks_like_test_times, read_test_times

    if count not in ("used", "declared"):
        raise FleetError(f"--count was given as {count!r}; accepted are used and declared.")
    rules = Needs(needs or ())
    recorded = [path for path in paths if format is None and looks_like_test_times(path)]
    if not recorded:
        from deep500.fleet.reading import read_outcomes

        table, report = read_outcomes(paths, format)
        return [("outcomes", cases_of_outcomes(table, rules, count))], report, table
    if len(recorded) < len(paths):
        others = [path for path in paths if path not in recorded]
        raise FleetError(
            f"{recorded[0]} holds recorded seconds and {others[0]} does not; give files of one kind, the others apart."
        )
    report = InputReport()
    found = [r for path in recorded for r in read_test_times(path, report, environment, configuration)]
    return [(recording.name, cases_of_times(recording.seconds, rules)) for recording in found], report, None


def unknown_rule(text: str) -> str | float:
    """Return what a test of unknown duration takes: a word, or seconds."""
    try:
        return float(text)
    except ValueError:
        return text
