"""The overheads of a problem set's sizes as text: a table that grows line by line, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deep500.core.quantities import scaled

if TYPE_CHECKING:
    from deep500.measure.results.overheads import Overhead
    from deep500.measure.statistics.quantiles import Interval

__all__ = ["duration_text", "header_text", "left_out_text", "list_rows", "notes", "overhead_text", "summary_text"]

#: Widths of the columns after the size.
_NUMBER, _TIME, _SHARE, _INTERVAL = 4, 10, 10, 20


def header_text(framework: str, width: int) -> str:
    """Return the heads of a framework's table.

    Args:
        framework: Its name.
        width: Width of the column of sizes.
    """
    heads = f"{'':>{_NUMBER}}  {'size':<{width}}  {'native':>{_TIME}}  {'wrapped':>{_TIME}}  {'overhead':>{_SHARE}}"
    return f"{framework}\n{heads}  {'interval, %':>{_INTERVAL}}  verdict"


def overhead_text(number: int, title: str, width: int, found: Overhead) -> str:
    """Return the line of a size that was measured."""
    times = [scaled("s", each.estimate)[0] for each in (found.base, found.other)]
    interval = "none" if found.interval is None else _ends(found.interval)
    return (
        f"{number:>{_NUMBER}}  {title:<{width}}  {times[0]:>{_TIME}}  {times[1]:>{_TIME}}  "
        f"{_percent(found.ratio) + ' %':>{_SHARE}}  {interval:>{_INTERVAL}}  {found.verdict.value}"
    )


def left_out_text(number: int, title: str, width: int, reason: str) -> str:
    """Return the line of a size that was not measured."""
    return f"{number:>{_NUMBER}}  {title:<{width}}  not measured: {reason}"


def summary_text(framework: str, found: Sequence[Overhead], left_out: int, missing: int) -> str:
    """Return what the sizes of a framework come to.

    Args:
        framework: Its name.
        found: Their overheads.
        left_out: How many could not be measured.
        missing: How many were not reached.
    """
    from deep500.measure.results.overheads import median_overhead

    without = [f"{left_out} not measured"] * (left_out > 0) + [f"{missing} not reached"] * (missing > 0)
    if not found:
        return f"{framework}: {', '.join(without) or 'no sizes'}"
    many = median_overhead(found)
    interval = "no interval, which needs 6 sizes"
    if many.interval is not None:
        interval = f"{many.interval.confidence_requested * 100:g} % interval {_ends(many.interval)} %"
    counts = [f"{many.slower} slower", f"{many.faster} faster", f"{many.undecided} undecided", *without]
    sizes = f"{len(found)} size{'s' if len(found) > 1 else ''}"
    return f"{framework}: median overhead over {sizes} {_percent(many.median)} % ({interval}); {', '.join(counts)}"


def notes(found: Sequence[Overhead]) -> Iterator[str]:
    """Return what has to be known beside the numbers."""
    from deep500.measure.results.summary import Basis

    bases = {each.basis for each in found}
    if Basis.IN_PROCESS in bases:
        yield (
            "Each size was measured in one process, and its interval and verdict are of that process alone; the median "
            "over sizes is over as many processes."
        )
    if Basis.NONE in bases:
        yield (
            "Sizes without an interval have too few samples, or 2 to 5 launches; an interval over launches needs 6 "
            "(--launches)."
        )
    unsettled = sum(each.base.converged is False or each.other.converged is False for each in found)
    if unsettled:
        yield f"Of {unsettled} sizes the time limit came before the ratio was known to 1 % (--time-limit)."


def list_rows(titles: Sequence[tuple[str, int, float]]) -> Iterator[tuple[str, str, str]]:
    """Return rows of number, size and work.

    Args:
        titles: Title, floating-point operations and bytes (in float32) of each problem.
    """
    for number, (title, flops, size_bytes) in enumerate(titles, 1):
        work, *_ = scaled("flop", flops)
        moved, *_ = scaled("B", size_bytes)
        yield str(number), title, f"{work}, {moved}"


def duration_text(seconds: float) -> str:
    """Return a time that is left, as exactly as anybody knows it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.2f}"


def _ends(interval: Interval) -> str:
    return f"{_percent(interval.low)} .. {_percent(interval.high)}"
