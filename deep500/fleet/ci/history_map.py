"""A history as a picture: which job failed at which commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from deep500.core.texts import counted

if TYPE_CHECKING:
    from deep500.fleet.ci.history import History

__all__ = ["history_map"]

#: More jobs than these have no names at the side.
_NAMED = 80

#: What a cell can be, and its colour, by its number.
_KINDS = (("no result", "#d9d9d9"), ("passed", "#9ecae1"), ("flaky", "#f2b134"), ("failed", "#a31621"))

_LONGEST_NAME = 60


def history_map(history: History) -> Figure:
    """Draw jobs from top to bottom and commits from left to right; a failure that a rerun took back is flaky."""
    cells = np.where(history.judged, 1, 0)
    cells[history.flaky] = 2
    cells[history.failures] = 3
    count = len(history.jobs)
    names = [job if len(job) <= _LONGEST_NAME else f"{job[: _LONGEST_NAME - 3]}..." for job in history.jobs]
    figure = Figure(figsize=(10.0, min(max(2.5, 0.2 * count + 1.2), 12.0)), layout="compressed")
    axes = figure.add_subplot()
    colours = ListedColormap([colour for _, colour in _KINDS])
    axes.imshow(cells.T, cmap=colours, vmin=0, vmax=len(_KINDS) - 1, aspect="auto", interpolation="nearest")
    if count <= _NAMED:
        axes.set_yticks(range(count), [name.replace("$", r"\$") for name in names], fontsize=7)
    else:
        axes.set_ylabel("job")
    axes.set_xlabel("commit, from the oldest to the newest")
    axes.legend(
        handles=[Patch(color=colour, label=kind) for kind, colour in _KINDS],
        loc="lower left", bbox_to_anchor=(0, 1), ncols=len(_KINDS), frameon=False, fontsize=8,
    )  # fmt: skip
    commits = counted(len(history.commits), "commit")
    axes.set_title(f"{counted(count, 'job')} at {commits}", fontsize=9, loc="right")
    return figure
