"""The picture of scaling: efficiency over ranks, what was measured beside what is predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from deep500.core.errors import CommunicationError
from deep500.core.files import write_atomically
from deep500.distributed.simulation.training_step import ScalingPoint
from deep500.measure.rendering import picture_format, rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MeasuredEfficiency", "draw_scaling"]

#: Colours of predictions that can be told apart with any kind of sight (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")

#: Styles of lines, so that a print without colours can be read too.
_STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class MeasuredEfficiency:
    """An efficiency that was measured.

    Attributes:
        ranks: On how many ranks.
        efficiency: Its estimate, 1 for as fast as it can be.
        low: Lower end of its interval.
        high: Upper end of its interval.
        oversubscribed: Whether the ranks shared processors, so that it tells nothing of a machine with enough of them.
    """

    ranks: int
    efficiency: float
    low: float
    high: float
    oversubscribed: bool = False


def draw_scaling(
    path: str | PathLike[str],
    predictions: Mapping[str, Sequence[ScalingPoint]],
    measured: Mapping[str, Sequence[MeasuredEfficiency]] | None = None,
    *,
    title: str = "",
    note: str = "",
) -> None:
    """Draw efficiency over ranks into a file; the same numbers give the same bytes.

    Args:
        path: Where to; the name ends with ``.svg`` or ``.png``.
        predictions: By label, drawn as lines.
        measured: By label, drawn as points with intervals; one that has a prediction's label has its colour.
        title: What was scaled, and whether strong or weak.
        note: A line at the foot: the base case, the model, its error on held-out sizes.

    Raises:
        MeasurementError: The file's name ends with no known format.
        CommunicationError: There is nothing to draw.
        FileWriteError: The file cannot be written.
    """
    suffix = picture_format(path)
    taken = measured or {}
    if not any(predictions.values()) and not any(taken.values()):
        raise CommunicationError(
            "A picture of scaling received no point; give it predictions or measured efficiencies."
        )
    write_atomically(path, rendered(lambda: _figure(predictions, taken, title, note), suffix), "picture")


def _figure(
    predictions: Mapping[str, Sequence[ScalingPoint]],
    measured: Mapping[str, Sequence[MeasuredEfficiency]],
    title: str,
    note: str,
) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator

    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.add_subplot()
    labels = list(dict.fromkeys([*predictions, *measured]))
    colours = {label: _COLOURS[number % len(_COLOURS)] for number, label in enumerate(labels)}
    for number, (label, points) in enumerate(predictions.items()):
        axes.plot(
            [point.ranks for point in points], [100 * point.efficiency for point in points], color=colours[label],
            linestyle=_STYLES[number % len(_STYLES)], linewidth=1.8, label=f"{label}, predicted",
        )  # fmt: skip
    for label, taken in measured.items():
        _draw_measured(axes, [point for point in taken if not point.oversubscribed], label, colours[label])
        _draw_measured(axes, [point for point in taken if point.oversubscribed], label, colours[label], crowded=True)
    ranks = {point.ranks for points in predictions.values() for point in points}
    ranks |= {point.ranks for taken in measured.values() for point in taken}
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(_ticks(sorted(ranks))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(bottom=0, top=max(105.0, axes.get_ylim()[1]))
    axes.set_xlabel("ranks (logarithmic)")
    axes.set_ylabel("efficiency in %")
    axes.grid(visible=True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if title:
        axes.set_title(title, loc="left", fontsize=10)
    figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=8)
    if note:
        figure.suptitle(note, x=0.01, ha="left", fontsize=7, color="#666666")
    return figure


def _draw_measured(
    axes: Axes, points: Sequence[MeasuredEfficiency], label: str, colour: str, *, crowded: bool = False
) -> None:
    """Draw points with intervals, in another form where ranks shared processors."""
    if not points:
        return
    values = [100 * point.efficiency for point in points]
    below = [value - 100 * point.low for value, point in zip(values, points)]
    above = [100 * point.high - value for value, point in zip(values, points)]
    axes.errorbar(
        [point.ranks for point in points], values, yerr=[below, above], color=colour, fmt="X" if crowded else "o",
        markersize=7 if crowded else 6, markerfacecolor="white", capsize=3, zorder=3,
        label=f"{label}, measured" + (", oversubscribed" if crowded else ""),
    )  # fmt: skip


def _ticks(ranks: Sequence[int]) -> list[int]:
    """Return the powers of two that the ranks span, every second or third one where there are many."""
    powers = list(range(ranks[0].bit_length() - 1, (ranks[-1] - 1).bit_length() + 1))
    return [2**power for power in powers[:: 1 + len(powers) // 14]]
