"""Jobs chosen at random, which a method has to be better than."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deep500.fleet.ci.selection import CoverageProblem

__all__ = ["choose_randomly"]


def choose_randomly(
    problem: CoverageProblem, cost: float, draws: int, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Return sets of jobs of a cost, each drawn by itself, [draws, J].

    The jobs that have to be kept are in each. The others come in a random order; each is taken that still fits, so a
    set costs nearly as much as it may, and never more.

    Args:
        problem: The jobs and their costs.
        cost: What a set may cost, with the jobs that have to be kept.
        draws: How many sets.
        generator: Where the order comes from.
    """
    places = np.flatnonzero(problem.candidates)
    costs = problem.costs[places]
    slack = 1e-9 * float(problem.costs.sum())
    room = max(0.0, cost - problem.cost(problem.kept)) + slack
    chosen = np.tile(problem.kept, (draws, 1))
    for row in chosen:
        order = generator.permutation(len(places))
        left = room
        while len(order):
            order = order[costs[order] <= left]
            spent = np.cumsum(costs[order])
            fits = int(np.searchsorted(spent, left, side="right"))
            row[places[order[:fits]]] = True
            left -= float(spent[fits - 1]) if fits else 0.0
            order = order[fits:]
    return chosen
