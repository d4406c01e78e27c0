"""The empirical distribution of each system's samples, launch by launch and of all launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from deep500.measure.pictures._axes import GREY, finish, scale_values
from deep500.measure.pictures._systems import ShownSystem, shown_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from deep500.measure.results.document import Measurement

__all__ = ["ecdf"]

_Style = Literal["-", "--", ":", "-."]

#: Styles of lines; where colours repeat, the style differs.
_STYLES: tuple[_Style, ...] = ("-", "--", ":", "-.")

#: Colours after which they repeat.
_COLOURS = 7

#: Most steps of a curve; the heights of one with more are right to less than a thousandth.
_STEPS = 2000


def ecdf(measurement: Measurement, metric: str | None = None) -> Figure:
    r"""Draw for each value the share of samples that are not above it.

    :math:`F(x) = \frac{1}{k} \sum_{j} \frac{1}{n_j} |\{i: x_{ji} \le x\}|`, the bold curve, counts each of the
    :math:`k` launches the same; thin curves are single launches. The diamond and the band through it are the value over
    launches with its interval, as the measurement's statistic asks for them.

    Args:
        measurement: What to draw.
        metric: Which metric; by default the first.

    Raises:
        MeasurementError: The samples cannot be summarised, or a system lacks the metric.
    """
    shown = shown_metric(measurement, metric)
    figure = Figure(figsize=(8.0, 4.6 + 0.3 * len(shown.systems)), layout="constrained")
    axes = figure.add_subplot()
    scale_values(axes, shown)
    legend = []
    for number, system in enumerate(shown.systems):
        style = _STYLES[number // _COLOURS % len(_STYLES)]
        _draw(axes, system, style, shown.quantile)
        words = f"{system.label}: {system.count}, {system.value}, {system.interval}"
        legend.append((Line2D([], [], color=system.colour, linestyle=style, linewidth=2.2), words))
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("share of samples up to here")
    axes.axhline(shown.quantile, color="#bbbbbb", linewidth=0.8, zorder=0.5)
    mark = Line2D([], [], color=GREY, marker="D", markerfacecolor="white", markersize=5, linestyle="")
    legend.append((mark, shown.meaning))
    if shown.has_launches:
        thin = Line2D([], [], color=GREY, linewidth=0.6, alpha=0.6)
        legend.append((thin, "single launches; in the bold curve each counts the same"))
    finish(figure, shown, legend)
    return figure


def _draw(axes: Axes, system: ShownSystem, style: _Style, quantile: float) -> None:
    if len(system.rows) > 1:
        for row in system.rows:
            axes.step(
                *_curve(row, np.full(len(row), 1 / len(row))), where="post", color=system.colour, linewidth=0.6,
                alpha=0.45, label="launch",
            )  # fmt: skip
    if system.ends is not None:
        axes.axvspan(*system.ends, color=system.colour, alpha=0.12, linewidth=0, label="band")
        axes.plot(system.ends, [quantile, quantile], "-", color=system.colour, linewidth=3, label="interval")
    pooled = _curve(system.samples, system.weights)
    axes.step(*pooled, where="post", color=system.colour, linestyle=style, linewidth=2.2, label="pooled")
    axes.plot(
        [system.estimate], [quantile], "D", color="white", markeredgecolor=system.colour, markersize=6, zorder=4,
        label="estimate",
    )  # fmt: skip


def _curve(
    samples: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where a curve steps and the height after each step; it starts at height 0."""
    order = np.argsort(samples, kind="stable")
    places, heights = samples[order], np.cumsum(weights[order])
    heights[-1] = 1.0  # the sum of the weights may differ in the last digit
    if len(places) > _STEPS:
        kept = np.unique(np.linspace(0, len(places) - 1, _STEPS).round().astype(int))
        places, heights = places[kept], heights[kept]
    return np.concatenate([places[:1], places]), np.concatenate([[0.0], heights])
