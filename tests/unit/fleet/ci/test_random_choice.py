from __future__ import annotations

import numpy as np
import pytest

from deep500.fleet.ci.random_choice import choose_randomly
from deep500.fleet.ci.selection import CoverageProblem


def _problem(costs: list[float], kept: list[int] = [], barred: list[int] = []) -> CoverageProblem:  # noqa: B006
    count = len(costs)
    is_kept, is_barred = (np.isin(np.arange(count), places) for places in (kept, barred))
    failures = np.ones((1, count), dtype=bool)
    names = tuple(f"job{n}" for n in range(count))
    return CoverageProblem.of_failures(names, failures, np.array(costs), 1.0, is_kept, ~is_barred)


def test_with_equal_costs_each_set_has_as_many_jobs_and_each_job_is_as_likely() -> None:
    chosen = choose_randomly(_problem([1.0] * 10), 3.0, 4000, np.random.default_rng(0))

    assert (chosen.sum(1) == 3).all()
    np.testing.assert_allclose(chosen.mean(0), 0.3, atol=0.03)


def test_sets_cost_no_more_and_nothing_that_is_left_would_fit() -> None:
    generator = np.random.default_rng(1)
    problem = _problem(generator.uniform(0.1, 2.0, 15).tolist(), kept=[0, 4], barred=[1])
    cost = problem.cost(problem.kept) + 4.0
    chosen = choose_randomly(problem, cost, 500, generator)
    spent = chosen @ problem.costs

    assert (spent <= cost + 1e-9).all()
    assert chosen[:, [0, 4]].all()
    assert not chosen[:, 1].any()
    left = np.where(chosen | ~problem.candidates, np.inf, problem.costs).min(1)
    assert (spent + left > cost).all()
    assert spent.mean() == pytest.approx(cost, rel=0.06)


def test_the_same_stream_gives_the_same_sets() -> None:
    problem = _problem([1.0, 2.0, 3.0, 1.5])
    first, second = (choose_randomly(problem, 3.0, 20, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_no_room() -> None:
    assert not choose_randomly(_problem([1.0, 2.0]), 0.5, 3, np.random.default_rng(0)).any()
    assert choose_randomly(_problem([1.0, 2.0]), 3.0, 3, np.random.default_rng(0)).all()
