"""The picture of a comparison of trajectories: losses above, distances from the reference below."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import TrainingError
from deep500.core.files import write_atomically
from deep500.measure.rendering import picture_format, rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deep500.training.validation.trajectory_report import TrajectoryReport

__all__ = ["draw_trajectories"]

#: Colours that people who see colours differently tell apart (M. Okabe, K. Ito, "Color universal design", 2008).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

_GREY = "#666666"


def draw_trajectories(report: TrajectoryReport, path: str | PathLike[str]) -> None:
    """Draw a report into a file; see :meth:`TrajectoryReport.draw`."""
    suffix = picture_format(path, TrainingError)
    write_atomically(path, rendered(lambda: _figure(report), suffix), "picture")


def _figure(report: TrajectoryReport) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    steps = np.arange(1, report.steps + 1)
    above.plot(steps, report.losses, color="black", linewidth=3, alpha=0.3, label=report.reference)
    floor = _floor(report)
    below.fill_between(steps, floor, np.maximum(report.allowed, floor), color="#dddddd", label="within rounding")
    for number, trajectory in enumerate(report.trajectories):
        colour = _COLOURS[number % len(_COLOURS)]
        count = len(trajectory.losses)
        above.plot(steps[:count], trajectory.losses, color=colour, linewidth=1.2, label=trajectory.framework)
        distances = np.maximum(trajectory.distances, floor)
        below.plot(steps[:count], distances, color=colour, marker=".", label=trajectory.framework)
        if trajectory.parting is not None and trajectory.parting.step <= count:
            at = trajectory.parting.step
            below.plot([at], [distances[at - 1]], "o", markersize=11, markerfacecolor="none", color=colour)
            below.annotate(
                f"step {at}: {trajectory.parting.tensor}",
                (at, distances[at - 1]),
                xytext=(10, -14),
                textcoords="offset points",
                fontsize=8,
                color=colour,
            )
    below.set_yscale("log")
    below.set_ylim(bottom=floor)
    above.set_ylabel("loss, before the step's update")
    below.set_ylabel("distance of the parameters,\nrelative to their 2-norm (logarithmic)")
    below.set_xlabel("training step")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (above, below):
        _tidy(axes)
    handles, labels = below.get_legend_handles_labels()
    first, name = above.get_legend_handles_labels()
    figure.legend(
        [first[0], *handles], [name[0], *labels], loc="outside lower left", ncols=5, frameon=False, fontsize=8
    )
    title = f"{report.network}, trained by {report.optimizer}: distance from {report.reference}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


def _floor(report: TrajectoryReport) -> float:
    """Return the lowest distance that is shown; those below, 0 among them, lie on it."""
    known = [d for t in report.trajectories for d in t.distances if d > 0]
    known += [limit for limit in report.allowed if limit > 0]
    return min(known, default=1e-8) / 2


def _tidy(axes: Axes) -> None:
    axes.grid(visible=True, color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8, colors=_GREY)
