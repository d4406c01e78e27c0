from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import FleetError
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.shard.queueing import (
    LaneWork,
    first_come_first_served,
    poisson_arrivals,
    recorded_arrivals,
    simulate_commits,
    simulate_detection,
    simulate_runs,
)

REPLICATIONS, JOBS, WARM_UP = 30, 6000, 1000


def erlang_c_wait(rate: float, service_rate: float, servers: int) -> float:
    """Return the mean wait in M/M/c: the chance to wait (Erlang C) over the spare rate."""
    load = rate / service_rate
    top = load**servers / math.factorial(servers) * servers / (servers - load)
    chance = top / (sum(load**k / math.factorial(k) for k in range(servers)) + top)
    return chance / (servers * service_rate - rate)


def mean_waits(rate: float, seconds: float | None, servers: int) -> tuple[float, float]:
    """Return the simulated mean wait and its standard error; exponential services of mean 1 without seconds."""
    means = []
    for replication in range(REPLICATIONS):
        random = np.random.default_rng([7, replication])
        arrivals = poisson_arrivals(JOBS, rate * 3600, random)
        services = random.exponential(1.0, JOBS) if seconds is None else np.full(JOBS, seconds)
        waits = first_come_first_served(arrivals, services, servers) - arrivals
        means.append(waits[WARM_UP:].mean())
    return float(np.mean(means)), float(np.std(means, ddof=1) / math.sqrt(REPLICATIONS))


@pytest.mark.parametrize(("rate", "servers"), [(0.5, 1), (1.4, 2), (4.0, 5)])
def test_mmc(rate: float, servers: int) -> None:
    mean, error = mean_waits(rate, None, servers)
    expected = erlang_c_wait(rate, 1.0, servers)
    assert abs(mean - expected) < 4 * error
    assert error < 0.06 * expected


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_md1(load: float) -> None:
    mean, error = mean_waits(load, 1.0, 1)
    expected = load / (2 * (1 - load))
    assert abs(mean - expected) < 4 * error
    assert error < 0.06 * expected


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=20), st.integers(1, 4))
def test_at_most_so_many_run_at_a_time_and_none_waits_for_nothing(
    jobs: list[tuple[float, float]], servers: int
) -> None:
    arrivals = np.cumsum([gap for gap, _ in jobs])
    seconds = np.array([length for _, length in jobs])
    starts = first_come_first_served(arrivals, seconds, servers)
    assert np.all(starts >= arrivals)
    assert np.all(np.diff(starts) >= 0)
    ends = starts + seconds
    for i, start in enumerate(starts):
        running = sum(1 for j in range(i) if ends[j] > start)
        assert running < servers
        if start > arrivals[i]:  # it waited until one of those before it ended
            assert start in ends[:i]


def test_one_job_alone_never_waits() -> None:
    work = LaneWork((30.0, 10.0, 20.0), runners=3)
    times = simulate_runs(np.array([0.0, 100.0]), work, np.random.default_rng(0))
    assert times.queue.tolist() == [0, 0]
    assert times.run.tolist() == [30, 30]
    # On two runners the third shard waits for the shorter of the first two, and ends with the first.
    times = simulate_runs(np.array([0.0]), LaneWork((30.0, 10.0, 20.0), 2), np.random.default_rng(0))
    assert times.signal.tolist() == [30]
    times = simulate_runs(np.array([0.0, 1.0]), LaneWork((30.0,), 1), np.random.default_rng(0))
    assert (times.queue.tolist(), times.run.tolist()) == ([0, 29], [30, 30])


def test_the_lane_that_ends_last_decides() -> None:
    lanes = [LaneWork((10.0,), 1), LaneWork((15.0,), 2), LaneWork((), 1)]
    times = simulate_commits(np.array([0.0, 1.0, 2.0]), lanes, np.random.default_rng(0))
    assert times.signal.tolist() == [15, 19, 28]
    assert times.run.tolist() == [15, 10, 10]
    nothing = simulate_commits(np.array([0.0]), [], np.random.default_rng(0))
    assert nothing.signal.tolist() == [0]


def test_spread_keeps_the_mean() -> None:
    drawn = LaneWork((100.0, 50.0), 1, spread=0.3).drawn(40_000, np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx([100, 50], rel=0.01)
    assert drawn.std(axis=0) == pytest.approx([30, 15], rel=0.03)


def test_detection_takes_half_a_period_and_the_run() -> None:
    period, run = 10_800.0, 2_400.0
    delays = np.concatenate(
        [
            simulate_detection(
                poisson_arrivals(4000, 2.0, np.random.default_rng([1, i])),
                LaneWork((run, run / 2), 2),
                period,
                np.random.default_rng([2, i]),
            )
            for i in range(10)
        ]
    )
    assert delays.mean() == pytest.approx(period / 2 + run, rel=0.01)
    assert np.quantile(delays, [0.0, 0.9, 1.0]) == pytest.approx([run, 0.9 * period + run, period + run], rel=0.02)


def test_periodic_runs_that_are_too_long_wait_for_each_other() -> None:
    arrivals = poisson_arrivals(500, 2.0, np.random.default_rng(1))
    delays = simulate_detection(arrivals, LaneWork((2000.0,), 1), 1000.0, np.random.default_rng(2))
    assert delays[-1] > 100 * 1000
    assert simulate_detection(np.empty(0), LaneWork((1.0,), 1), 1.0, np.random.default_rng(0)).size == 0


def test_recorded_arrivals() -> None:
    outcomes = [
        Outcome(
            f"job {job}",
            f"commit {i}",
            "passed",
            submitted=1000.0 - 10 * i + job if i % 2 else None,
            started=2000.0 - i,
        )
        for i in range(12)
        for job in range(2)
    ]
    times = recorded_arrivals(OutcomeTable.from_outcomes(outcomes))
    assert times == tuple(sorted([1000.0 - 10 * i if i % 2 else 2000.0 - i for i in range(12)]))
    with pytest.raises(FleetError, match="4 have a time"):
        recorded_arrivals(OutcomeTable.from_outcomes(outcomes[:8]))


def test_mistakes() -> None:
    with pytest.raises(FleetError, match="one at least"):
        first_come_first_served(np.array([0.0]), np.array([1.0]), 0)
    with pytest.raises(FleetError, match="rising order"):
        first_come_first_served(np.array([1.0, 0.0]), np.array([1.0, 1.0]), 1)
    with pytest.raises(FleetError, match="above 0"):
        poisson_arrivals(1, 0.0, np.random.default_rng(0))
