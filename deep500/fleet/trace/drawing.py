"""Pictures of a trace: survival, cumulative incidence, and the scatter plots of the classic view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deep500.core.texts import escaped
from deep500.fleet.trace.classic import ClassicView
from deep500.fleet.trace.factors import FACTORS
from deep500.fleet.trace.groups import GroupReport
from deep500.fleet.trace.wording import OUTCOMES, classic_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["classic_figure", "curves_figure"]

#: Names of what a factor's values are, on axes.
_AXES = {factor.name: factor.title for factor in FACTORS}

#: More points than these are drawn as a picture within the picture.
_RASTER = 1000

#: More curves cannot be told apart.
_MOST_CURVES = 20

#: Longer times, in seconds, are no times of tasks, and more than an axis can hold.
_LONGEST_S = 1e13

#: The colours repeat their hues, fainter: lines of one hue differ in their dashes.
_STYLES = (*["-"] * 4, *["--"] * 3, *[":"] * 3, "-.")

#: By what factor of time the bars of two neighbouring groups are apart.
_APART = 1.06


def curves_figure(groups: Sequence[GroupReport], title: str) -> Figure:
    """Return three pictures side by side: the share that still runs, that has failed, that has passed."""
    import matplotlib.style
    from matplotlib.figure import Figure

    colours = [part["color"] for part in matplotlib.style.library["tableau-colorblind10"]["axes.prop_cycle"]]
    figure = Figure(figsize=(11.5, 3.9), layout="constrained")
    axes = figure.subplots(1, 3)
    panels = (("running", "still running (Kaplan-Meier)"), ("failed", "failed (Aalen-Johansen)"),
              ("passed", "passed (Aalen-Johansen)"))  # fmt: skip
    shown = sorted(sorted(range(len(groups)), key=lambda place: -groups[place].rates.tasks)[:_MOST_CURVES])
    left_out = len(groups) - len(shown)
    groups = [groups[place] for place in shown]
    low, high = _time_limits(groups)
    for axis, (name, label) in zip(axes, panels, strict=True):
        for place, group in enumerate(groups):
            colour = colours[place % len(colours)]
            values = (1.0 if name == "running" else 0.0, *getattr(group.curves, name))
            times = [low, *(min(max(time, low), high) for time in group.curves.times_s)]
            style = _STYLES[min(place, len(_STYLES) - 1)]
            axis.step(times, values, where="post", color=colour, linestyle=style, linewidth=1.4)
            if name != "running":
                _bars(axis, group, name, colour, _APART ** (place - (len(groups) - 1) / 2))
        axis.set_title(label, fontsize=9, loc="left")
        _time_axis(axis, low, high)
        axis.set_ylim(0, 1)
    axes[0].set_ylabel("share of tasks")
    handles = [axes[0].get_lines()[place] for place in range(len(groups))]
    names = [f"{escaped(group.group)[:32]} ({group.rates.tasks:,})" for group in groups]
    barred = any(at.failed.low is not None or at.passed.low is not None for group in groups for at in group.at)
    told = ["number of tasks in parentheses"]
    if barred:
        told.append("vertical bars: intervals over users, side by side to be told apart")
    if left_out:
        told.append(f"{left_out:,} smaller groups are not drawn")
    figure.legend(handles, names, loc="outside lower left", ncols=5, frameon=False, fontsize=8)
    figure.suptitle(f"{escaped(title)} ({'; '.join(told)})", x=0.01, ha="left", fontsize=10)
    return figure


def _bars(axis: Axes, group: GroupReport, name: str, colour: str, shift: float) -> None:
    """Draw the intervals over users at the times for which there are some, shifted so that none hides another."""
    for at in group.at:
        share = getattr(at, name)
        if share.low is not None and share.high is not None:
            axis.vlines(min(at.time_s, _LONGEST_S) * shift, share.low, share.high, color=colour, linewidth=1.2)


def _time_limits(groups: Sequence[GroupReport]) -> tuple[float, float]:
    """Return where the axis of time begins and ends: from a second on, or from less where all ended within a minute."""
    longest = min(max(time for group in groups for time in group.curves.times_s), _LONGEST_S)
    if longest <= 0:
        return 1.0, 60.0
    low = 1.0 if longest >= 60 else 10.0 ** math.floor(math.log10(longest * 1e-3))
    return low, longest * (longest / low) ** 0.05


def _time_axis(axis: Axes, low: float, high: float) -> None:
    axis.set_xscale("log")
    ticks = [
        (1e-9, "1 ns"),
        (1e-6, "1 µs"),
        (1e-3, "1 ms"),
        (1.0, "1 s"),
        (60.0, "1 min"),
        (3600.0, "1 h"),
        (86400.0, "1 d"),
        (7 * 86400.0, "1 w"),
        (60 * 86400.0, "60 d"),
        (365 * 86400.0, "1 y"),
    ]
    axis.set_xticks([time for time, _ in ticks], [label for _, label in ticks])
    axis.set_xticks([], minor=True)
    axis.set_xlim(low, high)
    axis.set_xlabel("time since the task began (logarithmic)", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(visible=True, color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def classic_figure(view: ClassicView, outcome: str) -> Figure:
    """Return the scatter plots of one outcome: each group's mean run time over its value."""
    from matplotlib.figure import Figure

    shown = [found for found in view.correlations if found.outcome == outcome and found.groups]
    columns = 3
    rows = max(1, -(-len(shown) // columns))
    figure = Figure(figsize=(11.5, 3.1 * rows), layout="constrained")
    for place, found in enumerate(shown):
        axis = figure.add_subplot(rows, columns, place + 1)
        values = [float(group.value) for group in found.groups]
        means = [group.mean_s for group in found.groups]
        axis.plot(values, means, "o", markersize=3, color="#006BA4", alpha=0.7, rasterized=len(values) > _RASTER)
        if found.logarithmic and min(values) > 0:
            axis.set_xscale("log")
        label = _AXES.get(found.factor, found.factor)
        axis.set_xlabel(label + (" (logarithmic)" if axis.get_xscale() == "log" else ""), fontsize=8)
        axis.set_ylabel("mean run time (s)", fontsize=8)
        r = "" if found.r is None else f"\nr = {found.r:.2f}"
        p_value = "" if found.p_value is None else f", p = {found.p_value:.2e}"
        axis.set_title(f"{classic_name(found)}{r}{p_value}", fontsize=8, loc="left")
        axis.tick_params(labelsize=8)
        axis.grid(visible=True, color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    figure.suptitle(f"Classic view: mean time to {OUTCOMES[outcome]}", x=0.01, ha="left", fontsize=10)
    return figure
