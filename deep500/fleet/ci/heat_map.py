"""The correlation of jobs as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from deep500.core.texts import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from deep500.fleet.ci.correlating import Correlation

__all__ = ["heat_map"]

#: More jobs than these have no names at the side; more than these no numbers in the cells.
_NAMED, _WRITTEN = 80, 16

#: Inches that a named job takes, and the largest side of the map.
_STEP, _LARGEST = 0.2, 12.0

#: Longest name that is written out.
_LONGEST_NAME = 60


def heat_map(correlation: Correlation) -> Figure:
    """Draw the correlation of all pairs in the order of the clusters; clusters of several jobs have a frame.

    Pairs without a correlation are grey.
    """
    jobs = correlation.history.jobs
    count = len(jobs)
    side = min(max(3.0, _STEP * count), _LARGEST)
    names = [job if len(job) <= _LONGEST_NAME else f"{job[: _LONGEST_NAME - 3]}..." for job in jobs]
    room = 0.4 + 0.065 * max(map(len, names)) if count <= _NAMED else 0.5
    figure = Figure(figsize=(side + room + 1.6, side + 1.0), layout="compressed")
    axes = figure.add_subplot()
    colours = colormaps["RdBu_r"].with_extremes(bad="#b8b8b8")
    image = axes.imshow(correlation.matrix, cmap=colours, vmin=-1, vmax=1, interpolation="nearest")
    figure.colorbar(image, ax=axes, label="correlation of passing and failing (phi)", shrink=0.8)
    if count <= _NAMED:
        axes.set_yticks(range(count), [f"{n}. {name}".replace("$", r"\$") for n, name in enumerate(names)], fontsize=7)
        axes.set_xticks(range(count), [str(n) for n in range(count)], fontsize=6)
    axes.tick_params(length=0)
    if count <= _WRITTEN:
        _write(axes, correlation)
    _frame(axes, correlation)
    options = correlation.options
    axes.set_title(
        f"{counted(count, 'job')} in {counted(len(set(correlation.labels.tolist())), 'cluster')} "
        f"({options['linkage']} linkage, cut at {options['cut']:g} of the largest distance)",
        fontsize=9,
        loc="left",
    )
    return figure


def _write(axes: Axes, correlation: Correlation) -> None:
    for (row, column), value in np.ndenumerate(correlation.matrix):
        text = "?" if np.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)
        colour = "white" if abs(value) > 0.6 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=6, color=colour)


def _frame(axes: Axes, correlation: Correlation) -> None:
    start = 0
    for group in correlation.groups():
        if len(group) > 1:
            corner = (start - 0.5, start - 0.5)
            axes.add_patch(Rectangle(corner, len(group), len(group), fill=False, edgecolor="black", linewidth=1.4))
        start += len(group)
