"""What chosen jobs find for what they cost, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from deep500.core.texts import counted

if TYPE_CHECKING:
    from deep500.fleet.ci.reduction import Reduction

__all__ = ["recall_picture"]

_COLOURS = {"greedy": "#1f5a99", "layers": "#7a3f9d", "exact": "#b3541e", "clusters": "#4c7a34"}
_GREY = "#777777"

#: Choices whose costs differ by less stand side by side.
_NEAR = 0.018


def recall_picture(reduction: Reduction) -> Figure:
    """Draw the recall on held-out commits over the cost of each choice, beside random choices of the same cost.

    A point is a choice with its 95 % interval over commits; the grey bar beside it spans 95 % of the random choices.
    The line is the way of the greedy method, or of that in layers, job by job.
    """
    figure = Figure(figsize=(8.0, 4.8), layout="constrained")
    axes = figure.add_subplot()
    if len(reduction.path_recalls) > 1:
        shares, recalls = zip(*reduction.path_recalls, strict=True)
        axes.step(
            shares,
            recalls,
            where="post",
            color=_COLOURS["greedy"],
            linewidth=1.0,
            alpha=0.6,
            label="greedily, job by job",
        )
    drawn = [(name, result) for name, result in reduction.results.items() if result.evaluation.commits]
    for number, (name, result) in enumerate(drawn):
        near = [other for other, there in drawn if abs(there.cost_share - result.cost_share) < _NEAR]
        near.sort(key=lambda other: reduction.results[other].cost_share)  # the dearer stands to the right
        place = result.cost_share + _NEAR * (near.index(name) - (len(near) - 1) / 2)
        said = result.evaluation
        if said.recall is None:
            continue
        if said.random_interval is not None and said.random_recall is not None:
            label = "95 % of random choices of that cost" if number == 0 else ""
            axes.vlines(place + 0.008, *said.random_interval, color=_GREY, linewidth=4, alpha=0.5, label=label)
            axes.plot([place + 0.008], [said.random_recall], "_", color="black", markersize=7)
        if said.recall_interval is not None:
            axes.vlines(place, *said.recall_interval, color=_COLOURS[name], linewidth=1.2)
        axes.plot(
            [place], [said.recall], "o", color=_COLOURS[name],
            label=f"{name}: {counted(int(result.choice.chosen.sum()), 'job')}, {said.verdict}",
        )  # fmt: skip
    if not drawn:
        axes.text(0.5, 0.5, "no commit that is held out newly fails", ha="center", va="center", color=_GREY)
    axes.axvline(reduction.plan.budget, color=_GREY, linestyle=":", linewidth=1)
    axes.text(reduction.plan.budget, 1.03, " budget", color=_GREY, fontsize=8, va="bottom")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.08)
    axes.set_xlabel("cost, as a share of all jobs' cost")
    axes.set_ylabel("newly failing commits found (held out)")
    if drawn:
        axes.legend(fontsize=8, loc="lower right")
    axes.set_title(
        f"{counted(len(reduction.history.jobs), 'job')}; chosen from {counted(reduction.split, 'commit')}, judged by "
        f"the {len(reduction.history.commits) - reduction.split:,} after them",
        fontsize=9,
        loc="left",
    )
    return figure
