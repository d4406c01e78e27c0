from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import FleetError
from deep500.fleet.ci.generating import generate_history
from deep500.fleet.ci.history import history_of


def test_groups_fail_together_and_apart_from_each_other() -> None:
    table, truth = generate_history(commits=300, groups=3, jobs_per_group=3, singletons=2, idle=2, seed=11)
    history = history_of(table)
    columns = dict(zip(history.jobs, history.results.T, strict=True))

    assert len(truth.groups) == 5
    assert sorted([*truth.idle, *(job for group in truth.groups for job in group)]) == list(history.jobs)
    for group, breaks in zip(truth.groups, truth.breaks, strict=True):
        first = columns[group[0]]
        for job in group:
            np.testing.assert_array_equal(columns[job], first)
        failed = first == 0
        assert breaks == failed[0] + (failed[1:] & ~failed[:-1]).sum() > 0
    patterns = {tuple(columns[group[0]]) for group in truth.groups}
    assert len(patterns) == 5
    assert all((columns[job] == 1).all() for job in truth.idle)
    assert history.order == "time"
    for job, column in zip(history.jobs, history.costs.T, strict=True):
        assert column == pytest.approx(truth.costs[job])
    assert truth.cheapest == tuple(min(group, key=truth.costs.__getitem__) for group in truth.groups)


def test_flaky_failures_pass_when_they_are_run_again() -> None:
    clean = history_of(generate_history(commits=300, seed=5)[0])
    noisy = history_of(generate_history(commits=300, flaky_rate=0.05, seed=5)[0])

    np.testing.assert_array_equal(clean.results, noisy.results)
    np.testing.assert_array_equal(clean.failures, noisy.failures)
    assert not clean.flaky.any()
    assert noisy.flaky[clean.results == 1].mean() == pytest.approx(0.05, abs=0.01)
    np.testing.assert_array_equal(noisy.flaky, noisy.reruns)


def test_missing_results_are_cancelled() -> None:
    table, _ = generate_history(commits=300, missing_rate=0.1, flaky_rate=0.02, seed=5)
    history = history_of(table)
    assert (~history.judged).mean() == pytest.approx(0.1, abs=0.01)
    assert set(table.frame["status"].unique()) == {"passed", "failed", "cancelled"}
    assert (table.frame["status"] == "cancelled").sum() == (~history.judged).sum()  # nothing cancelled is run again


def test_a_seed_gives_the_same_history() -> None:
    first, second, third = (generate_history(commits=30, seed=seed) for seed in (1, 1, 2))
    assert first[0].frame.equals(second[0].frame)
    assert first[1] == second[1]
    assert not first[0].frame.equals(third[0].frame)
    assert first[1].to_dict()["breaks"] == first[1].breaks


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"commits": 1}, "commits was given as 1"),
        ({"flaky_rate": 1.0}, "flaky_rate is 1.0; accepted are rates"),
        ({"mean_life": 0.5}, "mean_life is 0.5"),
        ({"groups": 0, "singletons": 0}, "No job would ever fail"),
        ({"idle": -1}, "idle was given as -1"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(FleetError, match=message):
        generate_history(**options)


def test_a_life_without_end_is_refused() -> None:
    with pytest.raises(FleetError, match="mean_life is inf"):
        generate_history(mean_life=float("inf"))
