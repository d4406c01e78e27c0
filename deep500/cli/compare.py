"""``deep500 compare``: systems of result files against a base, with absolute values, ratios, intervals and verdicts."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from deep500.cli.exit_codes import FAILED, PASSED
from deep500.core.quantities import scaled, significant
from deep500.core.texts import escaped, shown_path

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from deep500.measure.results.document import Measurement, System
    from deep500.measure.results.report import ComparedSystem, ComparisonReport, ComparisonRow, Source
    from deep500.measure.results.summary import Summary

__all__ = ["COMPARE_EXAMPLES", "compare_command", "show_report"]

COMPARE_EXAMPLES = """\b
Examples:
  deep500 compare pytorch.json tensorflow.json
  deep500 compare result.json --margin 0.01
  deep500 compare old.json new.json --margin 0.02 --fail-if-slower --fail-if-undecided && echo "no slower"
  deep500 compare a.json b.json c.json --output comparison.json --picture comparison.svg

\b
The base of all ratios is the first system of the first file. A verdict needs
6 process launches of each system; ratios below 1 are faster where lower is
better.

\b
Exit code:
  0 compared, 1 a system is slower and --fail-if-slower was given, or undecided
  and --fail-if-undecided,
  2 refused: the systems may not be compared, or a file is no result
"""

#: Width of the tables where no terminal says another.
_WIDTH_OF_PIPE = 100

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Files that deep500 bench --output wrote.")]
Metric = Annotated[str | None, typer.Option(metavar="NAME", help="The metric; by default the first of the base.")]
Margin = Annotated[float | None, typer.Option(metavar="SHARE", help="Difference that does not matter, such as 0.01.")]
Confidence = Annotated[float, typer.Option(metavar="SHARE", help="Confidence of every interval.")]
Output = Annotated[str | None, typer.Option(metavar="FILE", help="Write the comparison to this JSON file.")]
Picture = Annotated[str | None, typer.Option(metavar="FILE", help="Draw the samples: a .png or .svg file.")]
PictureKind = Annotated[str, typer.Option(metavar="KIND", help="violin or ecdf.")]
AllowUnknown = Annotated[
    bool, typer.Option("--allow-unknown", help="Compare where the data of one system only is known.")
]
FailIfSlower = Annotated[bool, typer.Option("--fail-if-slower", help="Exit with code 1 if a system is slower.")]
FailIfUndecided = Annotated[
    bool, typer.Option("--fail-if-undecided", help="Exit with code 1 if of a system nothing was shown.")
]


def compare_command(
    files: Files,
    metric: Metric = None,
    margin: Margin = None,
    confidence: Confidence = 0.95,
    output: Output = None,
    picture: Picture = None,
    picture_kind: PictureKind = "violin",
    allow_unknown: AllowUnknown = False,
    fail_if_slower: FailIfSlower = False,
    fail_if_undecided: FailIfUndecided = False,
) -> int:
    """Compare the systems of one or several result files with the first."""
    from deep500.core.files import check_separate, check_writable
    from deep500.measure.picture import check_picture
    from deep500.measure.results.comparing import compare
    from deep500.measure.results.files import read_with_source, write_comparison
    from deep500.measure.statistics.comparison import Verdict

    check_separate({"comparison": output, "picture": picture}, files)
    if output is not None:
        check_writable(output, "comparison")
    if picture is not None:
        check_picture(picture_kind, picture)
    entries: list[tuple[Measurement, System]] = []
    sources: list[Source] = []
    for file in files:
        measurement, source = read_with_source(file)
        entries += [(measurement, system) for system in measurement.systems]
        sources += [source] * len(measurement.systems)
    report = compare(
        entries,
        metric=metric,
        margin=margin,
        confidence=confidence,
        allow_unknown=allow_unknown,
        sources=sources,
    )
    show_report(report)
    _show_rates(report, entries)
    if output is not None:
        write_comparison(report, output)
        print(f"The comparison is in {shown_path(output)}")
    if picture is not None:
        _draw(report, entries, (picture_kind, picture), metric)
    failing = {Verdict.SLOWER: fail_if_slower, Verdict.UNDECIDED: fail_if_undecided}
    return FAILED if any(failing.get(row.verdict, False) for row in report.rows) else PASSED


def show_report(report: ComparisonReport) -> None:
    """Write a comparison as a table, and below it all that has to be known beside the ratios."""
    from rich.text import Text

    console = _console()
    absolute = report.base.absolute
    quantile = report.statistic.quantile
    what = "median" if quantile == 0.5 else f"{quantile:.6g} quantile"
    title = f"{absolute.name}, {what}; {absolute.direction.value} is better"
    table = _table(escaped(title))
    table.add_column("System", overflow="fold")
    for name in ("Value", "Ratio to base"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("Verdict", no_wrap=True)
    table.add_column("Launches", justify="right", no_wrap=True)
    table.add_row(*_cells(report.base, "", "base"))
    for row in report.rows:
        table.add_row(*_cells(row.system, _ratio_text(row), row.verdict.value))
    console.print(table)
    for line in _details(report):
        console.print(Text(line), soft_wrap=True)
    console.print()


def _cells(system: ComparedSystem, ratio: str, verdict: str) -> Iterator[Text]:
    from rich.text import Text

    styles = {"faster": "green", "slower": "red", "equivalent": "green"}
    absolute = system.absolute
    yield Text(escaped(system.label))
    yield Text(_value_text(absolute))
    yield Text(ratio)
    yield Text(verdict, style=styles.get(verdict, ""))
    yield Text(str(absolute.launches))


def _value_text(summary: Summary) -> str:
    """Return a value, and its interval below."""
    unit = escaped(summary.unit)
    if summary.interval is None:
        return f"{scaled(unit, summary.estimate)[0]}\nno interval"
    value, low, high = scaled(unit, summary.estimate, summary.interval.low, summary.interval.high)
    return f"{value}\n{low} .. {high}"


def _ratio_text(row: ComparisonRow) -> str:
    """Return a ratio, and its interval below, with as many digits as keep the ends apart."""
    if row.interval is None:
        return f"{significant(row.ratio)}\nno interval"
    width = row.interval.high - row.interval.low
    decimals = 3 if width <= 0 else min(6, max(3 if row.ratio < 100 else 1, 1 - math.floor(math.log10(width))))
    return f"{row.ratio:.{decimals}f}\n{row.interval.low:.{decimals}f} .. {row.interval.high:.{decimals}f}"


def _details(report: ComparisonReport) -> Iterator[str]:
    percent = f"{report.statistic.confidence * 100:.6g} %"
    margin = "" if report.margin is None else f"; equivalent within {report.margin * 100:.6g} %"
    yield f"Intervals of {percent}{margin}."
    systems = [report.base, *(row.system for row in report.rows)]
    for row in report.rows:
        how = {"samples": "interleaved run by run", "launches": "launch by launch"}.get(row.pairing)
        if how is not None:
            yield f"{escaped(row.system.label)}: compared pair by pair, {how}"
        if row.factors:
            yield f"{escaped(row.system.label)} differs from the base in:"
        for factor in row.factors:
            yield f"  {escaped(factor.name)}: {_factor_text(factor.first)} -> {_factor_text(factor.second)}"
        if row.note:
            yield f"{escaped(row.system.label)}: {escaped(row.note)}"
    for system in systems:
        yield from _system_details(system)
    if report.many is not None:
        different = [f"{pair.first} and {pair.second}" for pair in report.many.pairs if pair.different]
        pairs = f"; different after Holm: {escaped(', '.join(different))}" if different else ""
        yield f"All {len(systems)} systems alike (Kruskal-Wallis): p = {report.many.p_value:.2g}{pairs}"
    for warning in report.warnings:
        yield f"Note: {escaped(warning)}"


def _system_details(system: ComparedSystem) -> Iterator[str]:
    label = escaped(system.label)
    if system.absolute.basis.value != "launches":
        yield f"{label}: {escaped(system.absolute.note)}"
    for warning in system.absolute.warnings:
        yield f"{label}: {escaped(warning)}"
    for score in system.scores:
        unit = f" {escaped(score.unit)}" if score.unit else ""
        asked = "" if score.acceptable is None else f" (acceptable: {significant(score.acceptable)})"
        yield f"{label}: {escaped(score.name)} {significant(score.value)}{unit}{asked}"


def _factor_text(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else escaped(str(value))


def _show_rates(report: ComparisonReport, entries: Sequence[tuple[Measurement, System]]) -> None:
    """Write the rates that follow from the times, where it is known what a run does."""
    from rich.text import Text

    from deep500.measure.results.summary import TIME, achieved_flops, throughput

    if report.base.absolute.name != TIME:
        return
    labels = [report.base.label, *(row.system.label for row in report.rows)]
    rows = [
        (label, rate)
        for label, (_, system) in zip(labels, entries)
        for rate in (throughput(system, report.statistic), achieved_flops(system, report.statistic))
        if rate is not None
    ]
    if not rows:
        return
    console = _console()
    table = _table("Rates at these times; higher is better")
    table.add_column("System", overflow="fold")
    table.add_column("Rate", no_wrap=True)
    table.add_column("Value", justify="right", no_wrap=True)
    for label, rate in rows:
        table.add_row(*(Text(text) for text in (escaped(label), rate.name, _value_text(rate))))
    console.print(table)
    console.print()


def _draw(
    report: ComparisonReport,
    entries: Sequence[tuple[Measurement, System]],
    picture: tuple[str, str],
    metric: str | None,
) -> None:
    from deep500.measure.picture import draw
    from deep500.measure.results.merging import side_by_side

    labels: Iterable[str] = [report.base.label, *(row.system.label for row in report.rows)]
    named = [(measurement, replace(system, label=label)) for label, (measurement, system) in zip(labels, entries)]
    kind, path = picture
    draw(side_by_side(named), kind, path, metric)
    print(f"The picture is in {shown_path(path)}")


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=_WIDTH_OF_PIPE)
    return console


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    return Table(
        title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False
    )
