"""Pictures of plans, of changes of runners, and of what tests need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deep500.fleet.shard.planning import Plan, round_robin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deep500.fleet.shard.gpu_report import GpuReport, GpuRow
    from deep500.fleet.shard.whatif import WhatIf

__all__ = ["draw_change", "draw_needs", "draw_plan", "draw_plans"]

_BLUE, _ORANGE, _GREY, _LIGHT = "#2f6db3", "#d9822b", "#666666", "#c9d3de"


#: From so many tests on, few would not be seen beside them on a linear axis.
_MANY = 100


def draw_plan(plan: Plan) -> Figure:
    """Draw the shards of a plan, part by part, above those of round robin, with the lower bound of each lane."""
    rows: list[tuple[str, list[float], str]] = [
        (f"shard {shard.number} ({shard.lane.name})", [part.seconds for part in shard.parts], _BLUE)
        for shard in plan.shards
    ]
    for lane in plan.lanes:
        if not lane.is_periodic:
            cases = {case.name: case for s in plan.of(lane) for part in s.parts for case in part.cases}
            ordered = sorted(cases.values(), key=lambda case: plan.order[case.name])
            for shard in round_robin(ordered, lane.shards).shards:
                seconds = sorted((part.seconds for part in shard.parts), reverse=True)
                rows.append((f"round robin {shard.number} ({lane.name})", seconds, _ORANGE))
    figure = _new(9.0, 1.2 + 0.38 * len(rows))
    axes = figure.add_subplot()
    wide = max((sum(seconds) for _, seconds, _ in rows), default=0.0) / 100
    for place, (_, seconds, colour) in enumerate(rows):
        left = 0.0
        for length in seconds:
            edge = "white" if length > wide else colour  # edges would be all that is seen of narrow parts
            axes.barh(place, length / 60, left=left / 60, height=0.7, color=colour, edgecolor=edge, linewidth=0.4)
            left += length
    for lane in plan.lanes:
        summary = plan.summary(lane)
        axes.axvline(summary.lower_bound_s / 60, color=_GREY, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.invert_yaxis()
    axes.set_xlabel("minutes (dashed: no plan takes less)")
    axes.set_title("What each shard runs, part by part", fontsize=9, loc="left")
    return figure


def draw_plans(plans: Sequence[tuple[str, Plan]]) -> Figure:
    """Draw the makespans of many configurations beside round robin and the lower bound."""
    figure = _new(9.0, 1.4 + 0.5 * len(plans))
    axes = figure.add_subplot()
    for place, (_, plan) in enumerate(plans):
        baseline = next((b for b in plan.baselines() if b.order == "as given"), None)
        if baseline is not None:
            axes.barh(
                place - 0.2, baseline.makespan_s / 60, 0.36, color=_ORANGE, label=None if place else "round robin"
            )
        axes.barh(place + 0.2, plan.makespan_s / 60, 0.36, color=_BLUE, label=None if place else "longest first")
        bound = max((plan.summary(lane).lower_bound_s for lane in plan.lanes if not lane.is_periodic), default=0.0)
        axes.plot([bound / 60] * 2, [place - 0.45, place + 0.45], color=_GREY, linestyle="--", linewidth=1)
    axes.set_yticks(range(len(plans)), [name for name, _ in plans])
    axes.invert_yaxis()
    axes.set_xlabel("makespan in minutes (dashed: no plan takes less)")
    axes.set_title("Makespans of plans and of round robin", fontsize=9, loc="left")
    axes.legend(loc="best")
    return figure


def draw_change(result: WhatIf) -> Figure:
    """Draw the time to signal of both, p50 and p90, with its interval, over the parts in the queue and running."""
    figure = _new(9.0, 3.6)
    axes = figure.add_subplot()
    names = []
    for place, (what, scenario, quantile) in enumerate(
        (what, scenario, quantile)
        for quantile in ("p50", "p90")
        for what, scenario in (("today", result.today), ("proposed", result.proposed))
    ):
        names.append(f"{what}, {quantile}")
        for offset, part, colour in ((-0.27, "signal", _BLUE), (0.0, "queue", _ORANGE), (0.27, "run", _LIGHT)):
            found = scenario.estimate(f"{part}_{quantile}_s")
            if found is not None:
                label = {"signal": "time to signal", "queue": "in the queue", "run": "running"}[part]
                axes.barh(place + offset, found.estimate / 3600, 0.25, color=colour, label=None if place else label)
                ends = [found.low / 3600, found.high / 3600]
                axes.plot(ends, [place + offset] * 2, color=_GREY, linewidth=2)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("hours (line: 95 % interval over replications)")
    axes.set_title("What a commit waits for, with today's runners and with proposed ones", fontsize=9, loc="left")
    axes.legend(loc="best")
    return figure


def draw_needs(report: GpuReport) -> Figure:
    """Draw how many tests declare each number of GPUs, and how many use it, with those that are lost."""
    numbers = sorted(
        {row.gpus for row in (*report.declared, *report.used)}, key=lambda number: (number is None, number or 0)
    )
    figure = _new(7.5, 3.4)
    axes = figure.add_subplot()
    for offset, rows, colour, label in (
        (-0.2, report.declared, _LIGHT, "declare"),
        (0.2, report.used, _BLUE, "need, by what was used"),
    ):
        found: dict[float | None, GpuRow] = {row.gpus: row for row in rows}
        counts = [found[number].tests if number in found else 0 for number in numbers]
        axes.bar([place + offset for place in range(len(numbers))], counts, 0.38, color=colour, label=label)
    lost = {row.gpus: row.lost for row in report.used}
    heights = [lost.get(number, 0) for number in numbers]
    label = "skipped in some run, since GPUs lacked"
    axes.bar([place + 0.2 for place in range(len(numbers))], heights, 0.38, color=_ORANGE, label=label)
    axes.set_xticks(range(len(numbers)), ["unknown" if number is None else f"{number:g}" for number in numbers])
    axes.set_xlabel("GPUs")
    axes.set_title("Tests by the GPUs that they declare, and by those that they use", fontsize=9, loc="left")
    axes.set_ylabel("tests")
    if max((row.tests for row in (*report.declared, *report.used)), default=0) > _MANY:
        axes.set_yscale("symlog", linthresh=10)
    else:
        axes.locator_params(axis="y", integer=True)
    axes.legend(loc="best")
    return figure


def _new(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
