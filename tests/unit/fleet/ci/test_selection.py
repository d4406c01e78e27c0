from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep500.core.errors import FleetError
from deep500.fleet.ci import selection
from deep500.fleet.ci.selection import CoverageProblem, choose_exactly, choose_greedily, choose_in_layers
from tests.unit.fleet.ci.support import names_where


@st.composite
def problems(draw: st.DrawFn, equal: bool = False, free: bool = False) -> CoverageProblem:
    """Problems of up to 9 jobs; ``free`` ones have no job that must be kept or not be chosen."""
    jobs, commits = draw(st.integers(1, 9)), draw(st.integers(1, 14))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    failures = generator.random((commits, jobs)) < draw(st.sampled_from([0.1, 0.25, 0.5]))
    costs = np.ones(jobs) if equal else generator.integers(0, 8, jobs) / 4 + generator.random(jobs).round(2)
    budget = (
        float(draw(st.integers(1, jobs))) if equal else float(draw(st.sampled_from([0.1, 0.3, 0.6, 1]))) * costs.sum()
    )
    kept = generator.random(jobs) < (0.0 if free else 0.15)
    candidates = generator.random(jobs) < (1.0 if free else 0.85)
    names = tuple(f"job{n}" for n in range(jobs))
    return CoverageProblem.of_failures(names, failures, costs, budget, kept, candidates)


def brute_force(problem: CoverageProblem) -> tuple[int, float]:
    """The most commits that any set within the budget finds, and the least that a set which does costs."""
    places = np.flatnonzero(problem.candidates)
    room = max(problem.budget - problem.cost(problem.kept), 0.0) + 1e-9 * problem.costs.sum()
    best = (problem.covered(problem.kept), -problem.cost(problem.kept))
    for bits in itertools.product([False, True], repeat=len(places)):
        chosen = problem.kept.copy()
        chosen[places[list(bits)]] = True
        if problem.cost(chosen & ~problem.kept) <= room:
            best = max(best, (problem.covered(chosen), -problem.cost(chosen)))
    return best[0], -best[1]


@settings(max_examples=50, deadline=None)
@given(problems())
def test_the_exact_method_finds_what_trying_all_sets_finds(problem: CoverageProblem) -> None:
    most, least_cost = brute_force(problem)
    exact = choose_exactly(problem)

    assert exact.covered == most == exact.at_most == problem.covered(exact.chosen)
    assert exact.gap == 0
    assert problem.cost(exact.chosen) == pytest.approx(least_cost, abs=1e-4 * (1 + problem.costs.sum()))


@settings(max_examples=50, deadline=None)
@given(problems())
def test_choices_keep_to_the_rules(problem: CoverageProblem) -> None:
    most, _ = brute_force(problem)
    for choose in (choose_greedily, choose_in_layers, choose_exactly):
        choice = choose(problem)
        assert (choice.chosen[problem.kept]).all()
        assert not (choice.chosen & ~problem.kept & ~problem.candidates).any()
        beside = problem.cost(choice.chosen & ~problem.kept)
        assert beside <= max(0.0, problem.budget - problem.cost(problem.kept)) + 1e-6
        assert choice.covered == problem.covered(choice.chosen) <= most
        if choice.path:
            assert set(choice.path) == set(np.flatnonzero(choice.chosen & ~problem.kept))


@settings(max_examples=50, deadline=None)
@given(problems(free=True))
def test_the_greedy_method_finds_its_share_of_the_best(problem: CoverageProblem) -> None:
    assert choose_greedily(problem).covered >= (1 - 1 / math.e) / 2 * brute_force(problem)[0]


@settings(max_examples=50, deadline=None)
@given(problems(free=True))
def test_with_money_enough_all_is_found(problem: CoverageProblem) -> None:
    rich = replace(problem, budget=float(problem.costs.sum()))
    assert choose_greedily(rich).covered == choose_exactly(rich).covered == problem.total


@settings(max_examples=50, deadline=None)
@given(problems(equal=True, free=True))
def test_with_equal_costs_its_share_is_larger(problem: CoverageProblem) -> None:
    assert choose_greedily(problem).covered >= (1 - 1 / math.e) * brute_force(problem)[0]


@settings(max_examples=40, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_jobs_says_nothing(problem: CoverageProblem, random: Any) -> None:
    order = list(range(len(problem.jobs)))
    random.shuffle(order)
    other = replace(
        problem,
        jobs=tuple(problem.jobs[n] for n in order),
        covers=problem.covers[:, order],
        costs=problem.costs[order],
        kept=problem.kept[order],
        candidates=problem.candidates[order],
    )
    for choose in (choose_greedily, choose_in_layers):
        assert names_where(other.jobs, choose(other).chosen) == names_where(problem.jobs, choose(problem).chosen)
    assert choose_exactly(other).covered == choose_exactly(problem).covered


def _problem(failures: list[list[int]], costs: list[float], budget: float, **options: Any) -> CoverageProblem:
    names = tuple("abcdefgh"[: len(costs)])
    return CoverageProblem.of_failures(names, np.array(failures, dtype=bool), np.array(costs), budget, **options)


def test_commits_with_the_same_failures_are_one_set() -> None:
    problem = _problem([[1, 0], [0, 0], [1, 0], [1, 1]], [1.0, 1.0], 1.0)
    assert problem.total == 3
    assert sorted(problem.weights.tolist()) == [1, 2]


def test_what_finds_most_for_its_cost_comes_first() -> None:
    # a finds 2 for 4, b finds 1 for 1, c finds 1 for 1 as well
    problem = _problem([[1, 1, 0], [1, 0, 0], [0, 0, 1]], [4.0, 1.0, 1.0], 6.0)
    assert choose_greedily(problem).path == (1, 2, 0)


def test_what_is_found_already_is_not_counted_again() -> None:
    # After a, b and c find one more commit each; the third, which all find, is not taken from c once more.
    problem = _problem([[1, 0, 0], [1, 0, 0], [1, 1, 1], [0, 1, 0], [0, 0, 1]], [1.0, 1.0, 1.0], 3.0)
    assert choose_greedily(problem).path == (0, 1, 2)


def test_ties_go_to_the_one_that_finds_more_then_to_the_first_name() -> None:
    more = _problem([[1, 0], [0, 1], [0, 1]], [1.0, 2.0], 3.0)
    assert choose_greedily(more).path == (1, 0)
    name = _problem([[1, 1]], [1.0, 1.0], 1.0)
    assert choose_greedily(name).path == (0,)
    assert choose_greedily(replace(name, jobs=("z", "a"))).path == (1,)


def test_one_job_that_finds_most_is_not_missed() -> None:
    # By the rate alone, a (1 for 0.01) leaves no room for b (10 for 10).
    problem = _problem([[1, 0], *([[0, 1]] * 10)], [0.01, 10.0], 10.0)
    assert choose_greedily(problem).path == (1,)


def test_the_exact_method_is_better_where_greed_misleads() -> None:
    # a finds 4 of 6 and comes first; b and c find 3 each, all together.
    failures = [[1, 1, 0], [1, 1, 0], [0, 1, 0], [1, 0, 1], [1, 0, 1], [0, 0, 1]]
    problem = _problem(failures, [1.0, 1.0, 1.0], 2.0)
    greedy, exact = choose_greedily(problem), choose_exactly(problem)
    assert (greedy.covered, exact.covered) == (5, 6)
    assert names_where(problem.jobs, exact.chosen) == {"b", "c"}


def test_jobs_that_cost_nothing_are_taken_first() -> None:
    problem = _problem([[1, 0], [0, 1]], [0.0, 1.0], 0.5)
    assert choose_greedily(problem).path == (0,)
    assert choose_exactly(problem).covered == 1


def test_what_must_be_kept_is_kept_beyond_the_budget() -> None:
    problem = _problem([[1, 0], [0, 1]], [5.0, 1.0], 2.0, kept=np.array([True, False]))
    for choose in (choose_greedily, choose_in_layers, choose_exactly):
        assert names_where(problem.jobs, choose(problem).chosen) == {"a"}


def test_layers_go_on_while_the_budget_lasts() -> None:
    problem = _problem([[1, 1, 1, 0], [1, 0, 1, 0]], [1.0, 1.0, 2.0, 1.0], 4.0)
    assert choose_greedily(problem).path == (0,)
    # Of the second layer, b (1 for 1) and c (2 for 2) find as much for their cost, and c more; d never fails.
    assert choose_in_layers(problem).path == (0, 2, 1)
    assert choose_in_layers(replace(problem, budget=3.0)).path == (0, 2)
    assert choose_in_layers(replace(problem, costs=np.array([1.0, 1.0, 2.1, 1.0]))).path == (0, 1)


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "LARGEST_EXACT", 1)
    with pytest.raises(FleetError, match="takes up to 1 failures of jobs in distinct commits; here are 2"):
        choose_exactly(_problem([[1, 1]], [1.0, 1.0], 1.0))


@pytest.mark.parametrize(("bound", "at_most"), [(None, 6), (5, 5), (100, 6)])
def test_a_choice_that_may_not_be_the_best_says_so(
    bound: int | None, at_most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "_solve", lambda *_: (None, bound))
    failures = [[1, 1, 0], [1, 1, 0], [0, 1, 0], [1, 0, 1], [1, 0, 1], [0, 0, 1]]
    choice = choose_exactly(_problem(failures, [1.0, 1.0, 1.0], 1.0), time_limit_s=2.0)

    assert (choice.covered, choice.at_most) == (4, at_most)
    assert choice.gap == pytest.approx((at_most - 4) / at_most)
    assert choice.notes == (
        f"The exact method stopped after 2 s: 4 failing commits are found, no set finds more than {at_most}.",
    )
