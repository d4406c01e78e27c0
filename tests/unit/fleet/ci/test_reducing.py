from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from deep500.core.errors import FleetError
from deep500.fleet.ci.evaluating import BETTER, NOT_BETTER, NOTHING_TO_CHOOSE, UNDECIDED
from deep500.fleet.ci.generating import generate_history
from deep500.fleet.ci.history import History, history_of
from deep500.fleet.ci.newly_failing import newly_failing
from deep500.fleet.ci.reducing import reduce_jobs
from deep500.fleet.ci.reduction import ReductionPlan
from deep500.fleet.reading import read_outcomes
from tests.unit.fleet.ci.support import IOFROL, history_from, names_where

QUICK = ReductionPlan(draws=200, resamples=500)


def _planted(**options: float) -> tuple[History, tuple[tuple[str, ...], ...], set[str]]:
    table, truth = generate_history(**{"commits": 400, "seed": 2, **options})  # type: ignore[arg-type]
    return history_of(table), truth.groups, set(truth.cheapest)


def test_the_right_set_is_found() -> None:
    history, _, cheapest = _planted()
    found = reduce_jobs(history, replace(QUICK, budget=0.5))

    for method in ("greedy", "exact", "clusters"):
        result = found.results[method]
        assert names_where(found.history.jobs, result.choice.chosen) == cheapest, method
        assert result.evaluation.recall == 1.0
        assert result.evaluation.verdict == BETTER
    assert set(found.chosen) == cheapest
    assert found.results["exact"].choice.gap == 0
    assert found.path_recalls[-1][1] == 1.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_noise_one_of_each_group_is_found_on_a_budget_for_as_many(seed: int) -> None:
    """Jobs of equal cost, which are flaky and sometimes cancelled; the budget is one job a group."""
    history, groups, _ = _planted(commits=500, flaky_rate=0.02, missing_rate=0.03, seed=seed)
    history = replace(history, costs=np.where(history.judged, 1.0, np.nan))
    found = reduce_jobs(history, replace(QUICK, budget=8.1 / 22))
    group_of = {job: number for number, group in enumerate(groups) for job in group}

    for method in ("greedy", "exact", "clusters"):
        chosen = names_where(found.history.jobs, found.results[method].choice.chosen)
        assert Counter(group_of[job] for job in chosen) == Counter(range(8)), method
        assert found.results[method].evaluation.verdict == BETTER
    assert found.results["exact"].choice.covered >= found.results["greedy"].choice.covered


def test_jobs_that_fail_by_themselves_are_no_better_chosen_than_at_random() -> None:
    """Independent failures, each with another job's chance as good: nothing can be learnt."""
    verdicts = []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        history = history_from((generator.random((300, 16)) > 0.03).astype(float))
        found = reduce_jobs(history, replace(QUICK, methods=("greedy",)))
        verdicts.append(found.proposed.evaluation.verdict)
    assert verdicts.count(NOT_BETTER) >= 9


def test_jobs_to_keep_and_to_drop() -> None:
    history, groups, cheapest = _planted()
    drop = (*groups[0][1:], "single1")
    found = reduce_jobs(history, replace(QUICK, budget=0.5, keep=("idle*", groups[0][0]), drop=drop))
    states = {row["job"]: row["state"] for row in found.rows()}

    assert {job for job, state in states.items() if state == "must keep"} == {"idle0", "idle1", groups[0][0]}
    for result in found.results.values():
        chosen = names_where(found.history.jobs, result.choice.chosen)
        assert chosen >= {"idle0", "idle1", groups[0][0]}
        assert not chosen & {"single1", *groups[0][1:]}
    assert any("only jobs find which are not to be chosen" in note for note in found.notes)
    assert set(found.chosen) == {"idle0", "idle1", groups[0][0], *(cheapest - {"single1", *groups[0]})}


def test_what_must_be_kept_is_kept_beyond_the_budget() -> None:
    history, _, _ = _planted()
    found = reduce_jobs(history, replace(QUICK, budget=0.05, keep=("group*",)))

    assert all(len(names_where(found.history.jobs, r.choice.chosen)) == 16 for r in found.results.values())
    assert any("more than the budget" in note for note in found.notes)
    assert all(r.evaluation.verdict == NOTHING_TO_CHOOSE for r in found.results.values())


def test_with_all_jobs_nothing_is_left_to_choose() -> None:
    history, _, _ = _planted()
    found = reduce_jobs(history, replace(QUICK, budget=1.0, methods=("layers",), drop=("idle*",)))
    assert found.proposed.evaluation.verdict == NOTHING_TO_CHOOSE


def test_what_is_kept_and_dropped_at_once_is_a_mistake() -> None:
    history, _, _ = _planted()
    with pytest.raises(FleetError, match="Both --keep and --drop match 'idle0' and 1 more"):
        reduce_jobs(history, replace(QUICK, keep=("idle*",), drop=("idle*",)))
    with pytest.raises(FleetError, match="nothing is left to choose"):
        reduce_jobs(history, replace(QUICK, drop=("*",)))


def test_jobs_that_only_come_later_count_for_nothing() -> None:
    generator = np.random.default_rng(0)
    results = (generator.random((100, 5)) > 0.1).astype(float)
    results[:70, 4] = np.nan
    found = reduce_jobs(history_from(results), QUICK)
    without = reduce_jobs(history_from(results[:, :4]), QUICK)

    assert found.newcomers == ("job0004",)
    assert found.results["greedy"].to_dict(found.history.jobs) == without.results["greedy"].to_dict(found.history.jobs)
    assert "chosen from: 1; nothing is said" in " ".join(found.notes)


def test_savings_are_those_of_the_commits_that_are_held_out() -> None:
    results = np.array([[0, 1], [1, 1], [1, 0], [1, np.nan]] * 5)
    history = history_from(results, ["a", "b"], costs=[[1.0, 3.0]])
    found = reduce_jobs(history, replace(QUICK, keep=("a",), drop=("b",), train_share=0.6, periodic=4))
    proposed = found.proposed

    assert (proposed.held_out_cost, proposed.held_out_saved) == (8 * 1.0, 6 * 3.0)
    assert proposed.saved_share == pytest.approx(18 / 26)
    assert proposed.cost_share == pytest.approx(1 / (1 + 3 * 0.75))
    assert proposed.delay is not None
    assert proposed.delay.saved_share == pytest.approx(18 / 26 * 0.75)


def test_costs_are_those_of_the_commits_that_are_chosen_from() -> None:
    generator = np.random.default_rng(0)
    results = (generator.random((20, 2)) > 0.3).astype(float)
    costs = np.where(np.arange(20)[:, None] < 14, [[1.0, 3.0]], [[50.0, 1.0]])
    found = reduce_jobs(history_from(results, ["a", "b"], costs=costs), replace(QUICK, keep=("a",), drop=("b",)))

    np.testing.assert_allclose(found.costs.run, [1, 3])
    assert found.proposed.cost_share == pytest.approx(0.25)
    assert found.proposed.saved_share == pytest.approx(0.75)


def test_newly_failing_commits_at_the_border_are_known_from_before() -> None:
    results = np.array([[1, 0], [1, 1], [0, 1], [0, 0], [0, 1], [1, 1]])
    found = reduce_jobs(history_from(results, ["a", "b"]), replace(QUICK, train_share=0.5, budget=0.5))
    # a fails at the border, but failed before; b newly fails there.
    assert found.split == 3
    assert found.proposed.evaluation.commits == 1
    assert found.proposed.evaluation.verdict == UNDECIDED


def test_choosing_by_what_newly_fails() -> None:
    # b fails for long, but once; a fails thrice anew. The budget is for one.
    b = [1, *[0] * 19]
    a = [1, 0, 1, 1, 0, 1, 1, 0, 1, 1, *[1] * 10]
    history = history_from(np.array([a, b]).T, ["a", "b"])
    plan = replace(QUICK, budget=0.5, train_share=0.9)
    assert reduce_jobs(history, plan).chosen == ("b",)
    assert reduce_jobs(history, replace(plan, aim="new")).chosen == ("a",)


def test_a_seed_gives_the_same_and_other_methods_change_nothing() -> None:
    history, _, _ = _planted(flaky_rate=0.02, missing_rate=0.02)
    plan = replace(QUICK, budget=0.2)
    first = reduce_jobs(history, plan).to_dict()
    assert reduce_jobs(history, plan).to_dict() == first
    alone = reduce_jobs(history, replace(plan, methods=("exact",))).to_dict()
    assert alone["methods"]["exact"] == first["methods"]["exact"]
    other = reduce_jobs(history, replace(plan, seed=1)).to_dict()
    assert other["methods"]["greedy"]["held_out"] != first["methods"]["greedy"]["held_out"]
    assert other["methods"]["greedy"]["jobs"] == first["methods"]["greedy"]["jobs"]


def test_a_method_that_cannot_be_used_is_told_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    history, _, _ = _planted()
    monkeypatch.setattr("deep500.fleet.ci.selection.LARGEST_EXACT", 1)
    found = reduce_jobs(history, QUICK)
    assert "exact" not in found.results
    assert "takes up to 1 failures" in found.skipped["exact"]
    with pytest.raises(FleetError, match="takes up to 1 failures"):
        reduce_jobs(history, replace(QUICK, methods=("exact",)))


def test_mistakes() -> None:
    with pytest.raises(FleetError, match="No job fails in the first 7 of 10 commits"):
        reduce_jobs(history_from(np.ones((10, 2))), QUICK)
    with pytest.raises(FleetError, match="No job newly fails in the first 7"):
        reduce_jobs(history_from(np.zeros((10, 2))), replace(QUICK, aim="new"))
    with pytest.raises(FleetError, match=r"1 commits cannot be parted at 0\.7"):
        reduce_jobs(history_from(np.zeros((1, 2))), QUICK)
    with pytest.raises(FleetError, match=r"pattern of --keep 'cuda.' matches none of the 2 jobs"):
        reduce_jobs(history_from(np.zeros((10, 2))), replace(QUICK, keep=("cuda*",)))


@pytest.mark.skipif(not IOFROL.exists(), reason="the data of the IOF/ROL history is not beside the project")
def test_a_real_history() -> None:
    """320 cycles of ABB Robotics' tests, most of which run in few cycles."""
    table, report = read_outcomes([IOFROL])
    history = history_of(table)
    assert report.to_dict()["outcomes"] == 32_260
    assert (len(history.commits), len(history.jobs)) == (320, 1941)
    assert history.judged.mean() < 0.05

    found = reduce_jobs(history, replace(QUICK, budget=0.3, draws=300))
    held_out = newly_failing(found.history)[224:]
    greedy, layers, exact = (found.results[name] for name in ("greedy", "layers", "exact"))
    assert found.split == 224
    assert greedy.evaluation.commits == held_out.any(1).sum() == 45
    assert greedy.choice.covered == exact.choice.covered == found.problem.total
    assert found.problem.cost(exact.choice.chosen) < found.problem.cost(greedy.choice.chosen)
    # One job for each failure is not better than as much at random; spending the budget on more of them is.
    assert greedy.evaluation.verdict == exact.evaluation.verdict == NOT_BETTER
    assert layers.evaluation.verdict == BETTER
    assert layers.evaluation.recall == pytest.approx(38 / 45)
    for result in found.results.values():
        low, high = result.evaluation.recall_interval or (1.0, 0.0)
        assert low < (result.evaluation.recall or 0.0) < high
