from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from deep500.fleet.ci.evaluating import (
    BETTER,
    NOT_BETTER,
    UNDECIDED,
    WORSE,
    delay_of,
    evaluate,
    found_by,
)
from deep500.fleet.ci.newly_failing import FOREVER


def _generator() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_commit_is_found_by_any_job_that_newly_fails_there() -> None:
    broken = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 1]], dtype=bool)
    chosen = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 0, 0]], dtype=bool)
    np.testing.assert_array_equal(
        found_by(broken, chosen), np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=bool)
    )


def test_figures_by_hand() -> None:
    broken = np.eye(8, dtype=bool)
    chosen = np.arange(8) < 6
    random = np.array([[1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 1], [1] * 6 + [0, 0], [1] * 8], dtype=bool)
    said = evaluate(broken, chosen, random, 2.5, _generator())

    assert (said.commits, said.found, said.recall) == (8, 6, 0.75)
    assert said.random_recall == pytest.approx((2 + 2 + 6 + 8) / 32)
    assert said.difference == pytest.approx(0.75 - 18 / 32)
    assert said.random_as_good == 0.5
    assert said.random_cost == 2.5
    assert said.random_interval == pytest.approx(np.quantile([0.25, 0.25, 0.75, 1.0], [0.025, 0.975]))


def test_intervals_are_those_of_a_mean() -> None:
    generator = _generator()
    broken = np.zeros((400, 3), dtype=bool)
    broken[np.arange(400), generator.integers(0, 3, 400)] = True
    chosen = np.array([True, False, False])
    random = generator.random((500, 3)) < 0.3
    said = evaluate(broken, chosen, random, 1.0, generator)
    found, drawn = broken[:, 0].astype(float), found_by(broken, random).mean(0)

    for interval, values in ((said.recall_interval, found), (said.difference_interval, found - drawn)):
        assert interval is not None
        half = 1.96 * values.std() / math.sqrt(400)
        assert interval == pytest.approx((values.mean() - half, values.mean() + half), abs=0.006)


@pytest.mark.parametrize("all_found", [True, False])
def test_where_all_are_found_or_none_the_interval_has_width(all_found: bool) -> None:
    said = evaluate(np.ones((10, 1), bool), np.array([all_found]), np.array([[True], [False]]), 1.0, _generator())
    low, high = said.recall_interval or (0, 0)
    edge = 0.025 ** (1 / 10)  # Clopper and Pearson's end for all of 10
    assert (low, high) == pytest.approx((edge, 1) if all_found else (0, 1 - edge))


@pytest.mark.parametrize(
    ("chosen", "random", "verdict"),
    [
        ([1, 1, 0], [0, 0, 1], BETTER),
        ([0, 0, 1], [1, 1, 0], WORSE),
        ([1, 1, 0], [1, 1, 0], NOT_BETTER),
        ([1, 0, 0], [0, 1, 0], NOT_BETTER),
    ],
)
def test_verdicts(chosen: list[int], random: list[int], verdict: str) -> None:
    broken = np.array([[1, 0, 0]] * 10 + [[0, 1, 0]] * 10, dtype=bool)
    said = evaluate(broken, np.array(chosen, bool), np.array([random], bool), 1.0, _generator())
    assert said.verdict == verdict


def test_few_commits_decide_nothing() -> None:
    said = evaluate(np.ones((5, 1), bool), np.array([True]), np.array([[False]]), 1.0, _generator())
    assert (said.recall, said.recall_interval, said.difference_interval, said.verdict) == (1.0, None, None, UNDECIDED)
    none = evaluate(np.zeros((0, 1), bool), np.array([True]), np.array([[False]]), 1.0, _generator())
    assert (none.commits, none.recall, none.verdict) == (0, None, UNDECIDED)
    assert none.to_dict()["random_interval"] is None


def test_random_choices_are_called_better_no_more_often_than_stated() -> None:
    """Choices that are themselves drawn at random: 2.5 % may be called better, and 2.5 % worse."""
    generator = np.random.default_rng(3)
    verdicts = []
    for _ in range(200):
        broken = generator.random((60, 12)) < 0.08
        broken = broken[broken.any(1)]
        random = np.array([generator.permutation(12) < 4 for _ in range(200)])
        said = evaluate(broken, generator.permutation(12) < 4, random, 4.0, generator, resamples=400)
        verdicts.append(said.verdict)
    share = verdicts.count(BETTER) / 200
    assert share < stats.binom.ppf(0.999, 200, 0.05) / 200


@pytest.mark.parametrize("every", [1, 2, 5])
def test_delays_are_the_means_over_where_the_count_begins(every: int) -> None:
    found = np.array([True, False, False, False, False])
    lives = np.array([3, 1, 2, 7, FOREVER])
    delays, missed_delays, seen = [], [], 0
    for phase in range(every):
        for is_found, life in zip(found, lives, strict=True):
            wait = 0 if is_found else phase
            if is_found or wait < life:
                seen += 1
                delays.append(wait)
                if not is_found:
                    missed_delays.append(wait)
    said = delay_of(found, lives, every, saved_share=0.8)

    assert said.found == pytest.approx(seen / (5 * every))
    assert said.passed_by == pytest.approx(1 - seen / (5 * every))
    assert said.mean_commits == pytest.approx(np.mean(delays))
    assert said.mean_missed_commits == pytest.approx(np.mean(missed_delays))
    assert said.saved_share == pytest.approx(0.8 * (1 - 1 / every))


def test_delays_where_nothing_is_missed() -> None:
    said = delay_of(np.array([True, True]), np.array([1, 1]), 4, 0.5)
    assert (said.found, said.mean_commits, said.mean_missed_commits) == (1.0, 0.0, None)
