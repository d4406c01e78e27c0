"""The axes that pictures share: the range and scale of values, the legend and the line at the foot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from deep500.measure.pictures._systems import ShownMetric

__all__ = ["GREY", "finish", "is_logarithmic", "is_one_place", "scale_values"]

#: Colour of what stands behind the data.
GREY = "#666666"

#: Values over so many times their smallest are shown on a logarithmic axis.
_LOGARITHMIC = 50.0

#: The axis starts at 0 unless that would leave more than this share of it empty.
_EMPTY = 0.5


def is_one_place(low: float, high: float) -> bool:
    """Whether two values are the same, but for digits that no axis can show."""
    return high - low <= 1e-9 * max(abs(low), abs(high))


def is_logarithmic(shown: ShownMetric) -> bool:
    """Whether values span so much that a linear axis would show nothing of most of them."""
    low, high = _range(shown)
    return low > 0 and high > _LOGARITHMIC * low


def scale_values(axes: Axes, shown: ShownMetric) -> None:
    """Set range, scale and label of the axis of values.

    Where data reach down to half of their highest value, the axis starts at 0, so that lengths compare as values do.
    Else it starts at the data, since a picture of positions need not hold the 0, and says so: intervals of a few per
    cent would be too small to see.
    """
    low, high = _range(shown)
    note = ""
    if is_logarithmic(shown):
        axes.set_xscale("log")
        axes.set_xlim(low / 1.15, high * 1.15)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        note = " (logarithmic)"
    elif high > 0 and (0 <= low <= (1 - _EMPTY) * high or is_one_place(low, high)):
        axes.set_xlim(0, high * 1.05)
    else:
        margin = (0.05 * abs(high) or 1.0) if is_one_place(low, high) else 0.05 * (high - low)
        axes.set_xlim(low - margin, high + margin)
        note = " (the axis does not start at 0)" if low - margin > 0 else ""
    axes.set_xlabel(shown.label + note)
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def finish(figure: Figure, shown: ShownMetric, legend: Sequence[tuple[Artist, str]], columns: int = 1) -> None:
    """Add the legend below the axes, and where the numbers come from."""
    handles, labels = zip(*legend, strict=True)
    figure.legend(handles, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize=8)
    colour = GREY if shown.is_complete else "#B00000"
    figure.suptitle(shown.origin, x=0.01, ha="left", fontsize=7, color=colour)


def _range(shown: ShownMetric) -> tuple[float, float]:
    values: list[NDArray[np.float64]] = [system.samples for system in shown.systems]
    values += [np.asarray(system.ends) for system in shown.systems if system.ends is not None]
    everything = np.concatenate(values)
    return float(everything.min()), float(everything.max())
