"""A measurement on the screen: each system by itself, and where there are several, their comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deep500.core.quantities import scaled, significant
from deep500.core.texts import escaped, shown_path

if TYPE_CHECKING:
    from deep500.measure.results.document import Measurement, Statistic, System
    from deep500.measure.results.summary import Summary

__all__ = ["show_measurement"]

Row = tuple[str, str, str]


def show_measurement(measurement: Measurement, output: str | None = None) -> None:
    """Write what was measured, with intervals and all that makes it doubtful.

    Args:
        measurement: What to show.
        output: The file that it is in; ``None`` for none.
    """
    for system in measurement.systems:
        _show_system(system, measurement)
    if len(measurement.systems) > 1:
        from deep500.cli.compare import show_report
        from deep500.measure.results.comparing import compare

        show_report(compare([(measurement, system) for system in measurement.systems]))
    if not measurement.complete:
        print(f"Incomplete: {measurement.failure}.")
    if output is not None:
        print(f"The result is in {shown_path(output)}")


def _show_system(system: System, measurement: Measurement) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(title=Text(escaped(system.label), style="bold"), title_justify="left", box=box.SIMPLE_HEAD)
    table.show_edge = table.pad_edge = False
    for name in ("", "value", "interval"):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    summaries = list(_summaries(system, measurement.design.statistic))
    for row in [*map(_row, summaries), *_peak(system, summaries, measurement), *_scores(system)]:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    console.print(table)
    time = summaries[0]
    console.print(Text(f"{time.samples} samples; {escaped(time.note)}"))
    if len(measurement.systems) == 1:  # of several, the comparison tells them, below
        warnings = [warning for summary in summaries for warning in summary.warnings]
        for warning in dict.fromkeys(warnings):
            console.print(Text(f"Note: {escaped(warning)}", style="yellow"))
    console.print()


def _summaries(system: System, statistic: Statistic) -> Iterator[Summary]:
    from deep500.measure.results.summary import achieved_flops, summarise, throughput

    for metric in system.metrics:
        yield summarise(metric, statistic)
    for derived in (throughput(system, statistic), achieved_flops(system, statistic)):
        if derived is not None:
            yield derived


def _row(summary: Summary) -> Row:
    if summary.interval is None:
        return summary.name, scaled(summary.unit, summary.estimate)[0], "none"
    value, low, high = scaled(summary.unit, summary.estimate, summary.interval.low, summary.interval.high)
    return summary.name, value, f"{low} .. {high}"


def _peak(system: System, summaries: Sequence[Summary], measurement: Measurement) -> Iterator[Row]:
    """The achieved rate as a share of the measured peak of the same dtype; never of another."""
    for peak in measurement.environment.get("peaks", ()):
        for summary in summaries:
            if summary.name == "AchievedFlops" and peak["dtype"] == system.work.dtype:
                share = summary.estimate / peak["flops_per_s"]
                yield "share of measured peak", f"{share:.1%}", f"of {scaled('FLOP/s', peak['flops_per_s'])[0]}"


def _scores(system: System) -> Iterator[Row]:
    for score in system.scores:
        sign = ">=" if score.direction.value == "higher" else "<="
        asked = "" if score.acceptable is None else f"{sign} {significant(score.acceptable)} {score.unit}".rstrip()
        yield score.name, f"{significant(score.value)} {score.unit}".rstrip(), asked
