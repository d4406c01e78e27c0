"""A violin for each system, with a dot for each launch and the median with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from deep500.measure.pictures._axes import GREY, finish, is_logarithmic, is_one_place, scale_values
from deep500.measure.pictures._systems import ShownMetric, ShownSystem, shown_metric

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from deep500.measure.results.document import Measurement

__all__ = ["violin"]

#: Half the height of a violin, and where the dots of the launches lie below its middle; systems are 1 apart.
_HALF_HEIGHT, _DOTS, _DOTS_SPREAD = 0.3, -0.4, 0.06

#: Fewer samples have no density, which would be made of next to nothing; each is drawn.
_FEWEST = 10

#: So many interquartile ranges beyond the quartiles, a sample is drawn by itself.
_FAR = 3.0

#: Places of the picture at which one sample stands for all.
_PLACES = 500

#: Points at which the density is computed.
_POINTS = 256


def violin(measurement: Measurement, metric: str | None = None) -> Figure:
    """Draw the density of each system's samples, its launches, and its value with the interval.

    The violin is a kernel density, between the smallest and the largest sample, in which launches count the same; its
    widest place is as high in every violin, so that heights compare within one, not between two. Samples far from the
    others are drawn one by one, and so are all where they are few. Below lies a dot for each launch, from the first
    (lowest) to the last (highest): drift over time shows as a slope. The diamond is the
    value over launches, the bar through it its interval, as the measurement's statistic asks for them.

    Args:
        measurement: What to draw.
        metric: Which metric; by default the first.

    Raises:
        MeasurementError: The samples cannot be summarised, or a system lacks the metric.
    """
    shown = shown_metric(measurement, metric)
    count = len(shown.systems)
    figure = Figure(figsize=(8.0, 1.6 + 0.95 * count), layout="constrained")
    axes = figure.add_subplot()
    scale_values(axes, shown)
    for number, system in enumerate(shown.systems):
        _draw(axes, system, count - 1.0 - number, is_logarithmic(shown))
    labels = ["\n".join([one.name, one.count, one.value, one.interval]) for one in shown.systems]
    axes.set_yticks([count - 1.0 - number for number in range(count)], labels, fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.6, count - 0.5)
    finish(figure, shown, _legend(shown))
    return figure


def _draw(axes: Axes, system: ShownSystem, middle: float, logarithmic: bool) -> None:
    colour = system.colour
    if _has_density(system):
        places, heights = _density(system, logarithmic)
        axes.fill_between(
            places, middle - _HALF_HEIGHT * heights, middle + _HALF_HEIGHT * heights, facecolor=to_rgba(colour, 0.35),
            edgecolor=colour, linewidth=0.8, label="density",
        )  # fmt: skip
    singles = _singles(system, logarithmic)
    axes.plot(singles, np.full(len(singles), middle), "|", color=colour, markersize=8, alpha=0.6, label="singles")
    launches = len(system.launch_values)
    if launches > 1:
        heights_of_dots = middle + _DOTS + _DOTS_SPREAD * np.linspace(-1, 1, launches)
        axes.plot(
            system.launch_values, heights_of_dots, "o", color=colour, markersize=4, alpha=0.8, markeredgewidth=0,
            label="launches",
        )  # fmt: skip
    if system.ends is not None:
        axes.plot(system.ends, [middle, middle], "-", color="black", linewidth=2.2, label="interval")
        axes.plot(system.ends, [middle, middle], "|", color="black", markersize=9, markeredgewidth=1.6, label="ends")
    axes.plot([system.estimate], [middle], "D", color="white", markeredgecolor="black", markersize=5, label="estimate")


def _has_density(system: ShownSystem) -> bool:
    return len(system.samples) >= _FEWEST


def _singles(system: ShownSystem, logarithmic: bool) -> NDArray[np.float64]:
    """Return the samples that are drawn one by one: all where they are few, else those far from the others.

    Of many that lie at one place of the picture, one is returned.
    """
    samples = system.samples
    if len(samples) == len(system.rows) > 1:  # the dots of the launches are the samples
        return samples[:0]
    if not _has_density(system):
        return samples
    values = np.log(samples) if logarithmic else samples
    order = np.argsort(values, kind="stable")
    ends = np.searchsorted(np.cumsum(system.weights[order]), [0.25, 0.75])
    first, third = values[order][ends]
    far = _FAR * (third - first)
    is_far = (values < first - far) | (values > third + far)
    places = np.round(values[is_far] / (np.ptp(values) or 1.0) * _PLACES)
    return np.asarray(samples[is_far][np.unique(places, return_index=True)[1]], dtype=np.float64)


def _density(system: ShownSystem, logarithmic: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return places between the extreme samples, and the density there as a share of its highest.

    A Gaussian kernel of Silverman's width, :math:`0.9 \min(s, \mathrm{IQR} / 1.34, h / 1.35)\, n^{-1/5}`, where
    :math:`h`, the shortest range that holds half of the samples, keeps several peaks apart. Samples are counted in as
    many bins as there are places. Samples that are all equal have a line.

    Source: B. W. Silverman, "Density Estimation for Statistics and Data Analysis", 1986, section 3.4.
    """
    values = np.log(system.samples) if logarithmic else system.samples
    low, high = float(values.min()), float(values.max())
    if is_one_place(low, high):
        return np.full(2, system.samples[0]), np.ones(2)
    step = (high - low) / (_POINTS - 1)
    width = max(0.9 * _spread(values) * len(values) ** -0.2, step)
    counts, _ = np.histogram(values, _POINTS, (low - step / 2, high + step / 2), weights=system.weights)
    distances = step * np.arange(-_POINTS + 1, _POINTS)
    kernel = np.exp(-0.5 * (distances / width) ** 2)
    density = np.convolve(counts, kernel)[_POINTS - 1 : 2 * _POINTS - 1]
    places = np.linspace(low, high, _POINTS)
    return np.exp(places) if logarithmic else places, density / density.max()


def _spread(values: NDArray[np.float64]) -> float:
    """Return the smallest of three estimates of the standard deviation that is not 0."""
    ordered = np.sort(values)
    half = len(ordered) // 2
    quartiles = np.quantile(ordered, [0.25, 0.75])
    shortest = float(np.min(ordered[half:] - ordered[: len(ordered) - half]))
    estimates = (float(ordered.std()), float(quartiles[1] - quartiles[0]) / 1.34, shortest / 1.35)
    return min(estimate for estimate in estimates if estimate > 0)


def _legend(shown: ShownMetric) -> list[tuple[Artist, str]]:
    entries: list[tuple[Artist, str]] = []
    if any(map(_has_density, shown.systems)):
        entries.append((Patch(color=GREY, alpha=0.35), "density of the samples; every launch counts the same"))
    if any(len(_singles(system, is_logarithmic(shown))) for system in shown.systems):
        mark = Line2D([], [], marker="|", linestyle="", color=GREY, markersize=8)
        entries.append((mark, "single samples, where they are few or far from the others"))
    if shown.has_launches:
        mark = Line2D([], [], marker="o", linestyle="", color=GREY, markersize=4)
        entries.append((mark, f"{shown.statistic} of one launch, the first at the bottom"))
    has_interval = any(system.ends is not None for system in shown.systems)
    mark = Line2D(
        [], [], color="black", marker="D", markersize=5, markerfacecolor="white", linewidth=2.2 * has_interval
    )
    return [*entries, (mark, shown.meaning)]
