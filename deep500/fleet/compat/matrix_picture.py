"""A campaign as a picture: versions by everything else, each cell in the colour of what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from deep500.fleet.compat.cell import Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["matrix_figure"]

#: Colour and short mark of each status; ``dropped`` and ``planned`` are those of a plan.
_LOOKS = {
    "passed": ("#2e8b45", "ok"),
    "failed": ("#c3273a", "failed"),
    "environment": ("#d99a1c", "env"),
    "no_match": ("#e8cf8a", "no match"),
    "timeout": ("#8e44ad", "timeout"),
    "unreachable": ("#5d6d7e", "lost"),
    "cancelled": ("#aab7c4", "cancelled"),
    "missing": ("#d5dbe1", "missing"),
    "dropped": ("#f2f2f2", "dropped"),
    "planned": ("#cfe3f5", "planned"),
}

_DARK = ("passed", "failed", "timeout", "unreachable")


def matrix_figure(statuses: Mapping[Cell, str]) -> Figure:
    """Return the picture.

    Args:
        statuses: What came of each cell: a status, ``planned`` or ``dropped``.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    rows = list(dict.fromkeys(_row(cell) for cell in statuses))
    columns = [_column(cell) for cell in sorted(statuses, key=_place)]
    columns = list(dict.fromkeys(columns))
    labels = _column_labels(columns)
    width, height = 3.2 + 0.95 * len(columns), 1.6 + 0.34 * len(rows) + 0.13 * max(map(len, labels), default=0) / 2
    figure = Figure(figsize=(max(width, 5.5), height), layout="constrained")
    axes = figure.subplots()
    for cell, status in statuses.items():
        x, y = columns.index(_column(cell)), rows.index(_row(cell))
        colour, mark = _LOOKS[status]
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
        axes.text(x, y, mark, ha="center", va="center", fontsize=7, color="white" if status in _DARK else "#222222")
    axes.set_xlim(-0.5, max(len(columns), 1) - 0.5)
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), labels, rotation=35, ha="left", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), [f"{framework} {version}" for framework, version in rows], fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    present = [status for status in _LOOKS if status in statuses.values()]
    handles = [Patch(facecolor=_LOOKS[status][0], label=status) for status in present]
    if handles:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=min(5, len(handles)), fontsize=8, frameon=False
        )
    return figure


def _place(cell: Cell) -> tuple[object, ...]:
    """Return what orders columns: numbers as numbers, and "none" first."""
    parts = [cell.python, cell.cuda or "0", cell.compute_capability or "0"]
    numbers = [tuple(int(number) for number in part.split(".")) for part in parts]
    return (*numbers, cell.ranks, cell.recipe or "")


def _row(cell: Cell) -> tuple[str, str]:
    return cell.framework, cell.version


def _column(cell: Cell) -> tuple[str, ...]:
    return (
        f"Python {cell.python}",
        f"CUDA {cell.cuda}" if cell.cuda else "no CUDA",
        f"GPU {cell.compute_capability}" if cell.compute_capability else "no GPU",
        f"{cell.ranks} {'rank' if cell.ranks == 1 else 'ranks'}",
        cell.recipe.rsplit("/", 1)[-1] if cell.recipe else "no recipe",
    )


def _column_labels(columns: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a label for each column that says only what differs between them."""
    columns = list(columns)
    differing = [place for place in range(5) if len({column[place] for column in columns}) > 1] or [0]
    return [", ".join(column[place] for place in differing) for column in columns]
