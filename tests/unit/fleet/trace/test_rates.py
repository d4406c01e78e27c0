"""Mean times to failure, GPU time that came to something, and their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, poisson

from deep500.fleet import Outcome, OutcomeTable
from deep500.fleet.trace.generating import Hazards, generate_outcomes
from deep500.fleet.trace.observed import observe
from deep500.fleet.trace.rates import mean_time_to_failure, rates, task_hours

HOUR = 3600.0


def outcome(key: str, status: str, start_h: float, end_h: float | None, gpus: float | None, **other: str) -> Outcome:
    ended = None if end_h is None else end_h * HOUR
    return Outcome(key, other.pop("group", "user"), status, started=start_h * HOUR, ended=ended, gpus=gpus, **other)


def test_the_exact_interval_is_garwoods() -> None:
    value, (low, high) = mean_time_to_failure(100.0, 7)
    assert value == pytest.approx(100 / 7)
    assert poisson.sf(6, 100 / high) == pytest.approx(0.025)  # 7 or more failures were it the longest
    assert poisson.cdf(7, 100 / low) == pytest.approx(0.025)  # 7 or fewer were it the shortest


def test_without_failures_there_is_only_a_lower_end() -> None:
    value, (low, high) = mean_time_to_failure(100.0, 0, 0.9)
    assert math.isinf(value)
    assert math.isinf(high)
    assert math.exp(-100 / low) == pytest.approx(0.05)


def test_the_exact_interval_covers() -> None:
    """Constant rates: failures and successes compete, and the trace ends."""
    covered = 0
    for seed in range(60):
        trace = observe(generate_outcomes(150, seed, Hazards.constant(10.0, 4.0, days=2.0, cancelled_per_h=0.05)))
        found = rates(trace, task_hours(trace), np.arange(len(trace)), 0.9, 100, seed)
        low, high = found.mttf_exact
        covered += low <= 10.0 <= high
    assert covered >= binom.ppf(0.001, 60, 0.9)


def test_hours_by_hand() -> None:
    table = OutcomeTable.from_outcomes(
        [
            outcome("a", "passed", 0, 2, 4),
            outcome("b", "failed", 0, 1, 2),
            outcome("b", "failed", 2, 5, 2),  # the same again
            outcome("b", "passed", 6, 8, 2),
            outcome("c", "cancelled", 0, 1, 1),
            outcome("d", "missing", 7, None, 1, cause="running"),  # runs for one hour, until the trace's end
            outcome("e", "failed", 0, 1, 0),  # without a GPU
            outcome("f", "passed", 0, 1, None),
        ]
    )
    trace = observe(table)
    hours = task_hours(trace)
    found = rates(trace, hours, np.arange(len(trace)))

    assert hours.unknown_gpus == 1
    assert (found.tasks, found.failed, found.passed, found.censored, found.users) == (8, 3, 3, 2, 1)
    assert found.hours == pytest.approx(12.0)
    assert found.mttf_h == pytest.approx(4.0)
    assert found.gpu_hours == pytest.approx(22.0)
    assert found.mttf_gpu_h == pytest.approx(11.0)
    assert found.passed_gpu_h == pytest.approx(12.0)
    assert found.failed_gpu_h == pytest.approx(8.0)
    assert found.rerun_gpu_h == pytest.approx(8.0)
    assert found.other_gpu_h == pytest.approx(2.0)
    assert found.effective == pytest.approx(12 / 22)
    assert found.mttf_users is None  # one user tells nothing of others


def test_a_failure_that_was_not_begun_again_is_no_rerun() -> None:
    trace = observe(OutcomeTable.from_outcomes([outcome("a", "passed", 0, 1, 1), outcome("a", "failed", 2, 3, 1)]))
    assert rates(trace, task_hours(trace), np.arange(2)).rerun_gpu_h == 0


def test_without_gpus_there_is_no_gpu_time() -> None:
    trace = observe(OutcomeTable.from_outcomes([outcome("a", "failed", 0, 1, None)]))
    found = rates(trace, task_hours(trace), np.arange(1))
    assert math.isnan(found.effective)
    assert math.isnan(found.mttf_gpu_h)
    assert found.mttf_h == pytest.approx(1.0)


def test_intervals_over_users_cover_where_users_differ() -> None:
    """Users with rates of their own: the exact interval is too narrow, that over users is not."""
    covered, exact = 0, 0
    for seed in range(80):
        generator = np.random.default_rng(seed)
        rate = np.repeat(generator.choice((0.5, 1.5), 60), 20)
        failed = generator.random(1200) < 1 - np.exp(-rate * 0.5)
        lasted = np.where(failed, -np.log(1 - generator.random(1200) * (1 - np.exp(-rate * 0.5))) / rate, 0.5)
        users = [f"u{number}" for number in np.repeat(np.arange(60), 20)]
        table = OutcomeTable.from_outcomes(
            outcome(f"t{n}", "failed" if failed[n] else "passed", 0, lasted[n], 1, group=users[n]) for n in range(1200)
        )
        trace = observe(table)
        found = rates(trace, task_hours(trace), np.arange(1200), 0.9, 300, seed)
        assert found.mttf_users is not None
        wanted = _truth()
        covered += found.mttf_users[0] <= wanted <= found.mttf_users[1]
        exact += found.mttf_exact[0] <= wanted <= found.mttf_exact[1]
    assert covered >= binom.ppf(0.001, 80, 0.87)  # a percentile interval of 60 users falls a little short
    assert exact < covered


def _truth() -> float:
    """Hours for each failure of two kinds of users, seen for half an hour at most."""
    chances = [1 - math.exp(-rate * 0.5) for rate in (0.5, 1.5)]
    hours = [chance / rate for chance, rate in zip(chances, (0.5, 1.5), strict=True)]
    return sum(hours) / sum(chances)


def test_the_seed_decides() -> None:
    trace = observe(generate_outcomes(300, 1))
    every = np.arange(len(trace))
    first, again, other = (rates(trace, task_hours(trace), every, 0.95, 200, seed) for seed in (0, 0, 1))
    assert first == again
    assert first.mttf_users != other.mttf_users
