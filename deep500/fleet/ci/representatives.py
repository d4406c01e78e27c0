"""One job of each cluster of jobs that pass and fail together: how the study of 2019 reduces jobs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import FleetError
from deep500.core.texts import counted
from deep500.fleet.ci.clustering import cut_tree
from deep500.fleet.ci.correlating import correlate
from deep500.fleet.ci.history import History
from deep500.fleet.ci.selection import Choice, CoverageProblem

__all__ = ["choose_representatives"]


def choose_representatives(
    problem: CoverageProblem, history: History, *, linkage: str, cut: float, least_support: int
) -> Choice:
    """Choose the cheapest job of each cluster; where that costs too much, of the clusters of a higher cut.

    The cut goes up the tree, merging clusters, until the representatives cost no more than the budget. A cluster with
    a job that has to be kept is represented by it. Jobs without a correlation are in no cluster and represent nothing;
    those that always fail among them, too.

    Args:
        problem: The jobs, their costs and the budget.
        history: The results that are correlated, of the same jobs.
        linkage: See :func:`deep500.fleet.ci.correlate`.
        cut: Where the tree is cut at first.
        least_support: Commits that a pair needs in common.

    Returns:
        The choice; its note says which cut it was.
    """
    allowed = np.flatnonzero(problem.kept | problem.candidates)
    try:
        correlation = correlate(
            history.columns(allowed.tolist()), linkage=linkage, cut=cut, least_support=least_support, pairs=0
        )
    except FleetError as error:
        note = f"No clusters: {error}"
        return Choice("clusters", problem.kept.copy(), problem.covered(problem.kept), notes=(note,))
    by_name = {job: place for place, job in enumerate(problem.jobs)}
    places = np.array([by_name[job] for job in sorted(correlation.history.jobs)])
    clustering = correlation.clustering
    heights = [clustering.height, *sorted(float(h) for h in clustering.tree[:, 2] if h > clustering.height)]
    for height in heights:
        groups = cut_tree(clustering.tree, height, clustering.largest).groups()
        chosen = _cheapest(problem, [places[group] for group in groups])
        if problem.cost(chosen & ~problem.kept) <= problem.room(problem.kept):
            share = height / clustering.largest if clustering.largest else 0.0
            note = f"{counted(len(groups), 'cluster')}, cut at {share:.3g} of the largest distance"
            if height > clustering.height:
                note += f", since the representatives at {cut:g} cost more than the budget"
            return Choice("clusters", chosen, problem.covered(chosen), notes=(f"{note}.",))
    note = "Not even the cheapest job of all in one cluster is within the budget."
    return Choice("clusters", problem.kept.copy(), problem.covered(problem.kept), notes=(note,))


def _cheapest(problem: CoverageProblem, groups: list[NDArray[np.intp]]) -> NDArray[np.bool_]:
    chosen = problem.kept.copy()
    for group in groups:
        if not problem.kept[group].any():
            chosen[min(group, key=lambda place: (problem.costs[place], problem.jobs[place]))] = True
    return chosen
