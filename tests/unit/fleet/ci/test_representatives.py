from __future__ import annotations

from dataclasses import replace

import numpy as np

from deep500.fleet.ci.generating import generate_history
from deep500.fleet.ci.history import History, history_of
from deep500.fleet.ci.job_costs import job_costs
from deep500.fleet.ci.representatives import choose_representatives
from deep500.fleet.ci.selection import CoverageProblem
from tests.unit.fleet.ci.support import history_from, names_where

OPTIONS = {"linkage": "complete", "cut": 0.1, "least_support": 2}


def _problem(history: History, budget: float) -> CoverageProblem:
    costs = job_costs(history).commit
    return CoverageProblem.of_failures(history.jobs, history.failures, costs, budget * costs.sum())


def test_the_cheapest_of_each_cluster_is_chosen() -> None:
    table, truth = generate_history(commits=200, seed=4)
    history = history_of(table)
    choice = choose_representatives(_problem(history, 1.0), history, **OPTIONS)  # type: ignore[arg-type]

    assert names_where(history.jobs, choice.chosen) == set(truth.cheapest)
    assert choice.covered == history.failures.any(1).sum()
    assert choice.notes == ("8 clusters, cut at 0.1 of the largest distance.",)


def test_what_must_be_kept_represents_its_cluster() -> None:
    table, truth = generate_history(commits=200, seed=4)
    history = history_of(table)
    dearest = [max(group, key=truth.costs.__getitem__) for group in truth.groups]
    kept = np.isin(history.jobs, dearest[0])
    problem = replace(_problem(history, 1.0), kept=kept, candidates=~kept)
    choice = choose_representatives(problem, history, **OPTIONS)  # type: ignore[arg-type]

    assert names_where(history.jobs, choice.chosen) == {dearest[0], *truth.cheapest[1:]}


def test_jobs_that_are_not_to_be_chosen_represent_nothing() -> None:
    table, truth = generate_history(commits=200, seed=4)
    history = history_of(table)
    problem = replace(_problem(history, 1.0), candidates=~np.isin(history.jobs, truth.groups[0]))
    choice = choose_representatives(problem, history, **OPTIONS)  # type: ignore[arg-type]

    assert names_where(history.jobs, choice.chosen) == set(truth.cheapest[1:])


def test_the_cut_goes_up_until_the_budget_suffices() -> None:
    table, truth = generate_history(commits=200, seed=4)
    history = history_of(table)
    for budget in (0.02, 0.05, 0.1, 0.2):
        problem = _problem(history, budget)
        choice = choose_representatives(problem, history, **OPTIONS)  # type: ignore[arg-type]
        assert problem.cost(choice.chosen) <= problem.budget
        assert names_where(history.jobs, choice.chosen) <= set(truth.cheapest)
        assert "since the representatives at 0.1 cost more than the budget" in choice.notes[0]
    poor = choose_representatives(_problem(history, 1e-6), history, **OPTIONS)  # type: ignore[arg-type]
    assert not poor.chosen.any()
    assert "Not even the cheapest" in poor.notes[0]


def test_without_clusters_nothing_is_chosen() -> None:
    history = history_from([[0, 1], [1, 1]])
    choice = choose_representatives(_problem(history, 1.0), history, **OPTIONS)  # type: ignore[arg-type]
    assert not choice.chosen.any()
    assert choice.notes[0].startswith("No clusters: 1 of 2 jobs")
