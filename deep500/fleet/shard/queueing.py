"""Simulating how commits wait for runners, and what a periodic run finds late."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import FleetError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deep500.fleet.outcome_table import OutcomeTable

    Floats = NDArray[np.float64]

__all__ = [
    "CommitTimes",
    "LaneWork",
    "first_come_first_served",
    "poisson_arrivals",
    "recorded_arrivals",
    "simulate_commits",
    "simulate_detection",
    "simulate_runs",
]


@dataclass(frozen=True)
class LaneWork:
    """What a run brings to the runners of one lane.

    Attributes:
        seconds: Seconds of each shard, set-up included.
        runners: How many runners there are.
        spread: Coefficient of variation of each shard's seconds from run to run (log-normal with the mean kept).
    """

    seconds: tuple[float, ...]
    runners: int
    spread: float = 0.0

    def drawn(self, runs: int, random: np.random.Generator) -> Floats:
        """Return seconds for so many runs, ``[runs, shards]``; the longest first, as their jobs are started."""
        base = np.sort(np.asarray(self.seconds, dtype=np.float64))[::-1]
        if self.spread <= 0:
            return np.tile(base, (runs, 1))
        sigma = np.sqrt(np.log1p(self.spread**2))
        return np.asarray(base * random.lognormal(-(sigma**2) / 2, sigma, (runs, len(base))), dtype=np.float64)


@dataclass(frozen=True)
class CommitTimes:
    """What each commit, or each periodic run, waited for; its last job to end decides.

    Attributes:
        arrived: When it was asked for.
        queue: How long its last job waited for a runner.
        run: How long its last job ran.
    """

    arrived: Floats
    queue: Floats
    run: Floats

    @property
    def signal(self) -> Floats:
        """Time to signal: from the commit to the end of its last job."""
        return self.queue + self.run

    def without(self, first: int) -> CommitTimes:
        """Return all but the first ones, which met empty queues."""
        return CommitTimes(self.arrived[first:], self.queue[first:], self.run[first:])


def poisson_arrivals(count: int, per_hour: float, random: np.random.Generator) -> Floats:
    """Return the times in seconds of arrivals that do not know of each other.

    Raises:
        FleetError: The rate is not above 0.
    """
    if not per_hour > 0:
        raise FleetError(f"Commits arrive at a rate of {per_hour} an hour; a rate above 0 is needed.")
    return np.cumsum(random.exponential(3600.0 / per_hour, count))


def recorded_arrivals(table: OutcomeTable) -> tuple[float, ...]:
    """Return when each group of outcomes was first asked for, else first started, in rising order.

    Raises:
        FleetError: Fewer than ten groups have a time.
    """
    import polars as pl

    first = table.frame.group_by("group").agg(
        pl.coalesce(pl.col("submitted").min(), pl.col("started").min()).alias("at")
    )
    times = tuple(sorted(first["at"].drop_nulls().to_list()))
    if len(times) < 10:
        raise FleetError(
            f"Of {first.height} groups of outcomes {len(times)} have a time; ten or more are needed as recorded "
            f"arrivals. Give --rate N instead."
        )
    return times


def first_come_first_served(arrivals: Floats, seconds: Floats, servers: int) -> Floats:
    """Return when each job starts: in the order of arrival, each as soon as one of the servers is free.

    Args:
        arrivals: When each job comes, in rising order.
        seconds: How long each takes.
        servers: How many are served at a time.

    Raises:
        FleetError: There is no server, or the arrivals do not rise.
    """
    if servers < 1:
        raise FleetError(f"A queue has {servers} servers; one at least is needed.")
    if len(arrivals) and bool(np.any(np.diff(arrivals) < 0)):
        raise FleetError("Arrivals are not in rising order; sort them.")
    free = [-np.inf] * servers
    starts = np.empty(len(arrivals))
    for i, (arrival, duration) in enumerate(zip(arrivals.tolist(), seconds.tolist(), strict=True)):
        start = max(arrival, free[0])
        heapq.heapreplace(free, start + duration)
        starts[i] = start
    return starts


def simulate_runs(arrivals: Floats, work: LaneWork, random: np.random.Generator) -> CommitTimes:
    """Return what runs wait for that bring all shards of a lane at once."""
    runs, shards = len(arrivals), len(work.seconds)
    seconds = work.drawn(runs, random)
    coming = np.repeat(arrivals, shards)
    starts = first_come_first_served(coming, seconds.reshape(-1), work.runners).reshape(runs, shards)
    last = np.argmax(starts + seconds, axis=1)
    rows = np.arange(runs)
    return CommitTimes(arrivals, starts[rows, last] - arrivals, seconds[rows, last])


def simulate_commits(arrivals: Floats, lanes: Sequence[LaneWork], random: np.random.Generator) -> CommitTimes:
    """Return what commits wait for that go through several lanes at once; the lane that ends last decides."""
    times = [simulate_runs(arrivals, work, random) for work in lanes if work.seconds]
    if not times:
        nothing = np.zeros(len(arrivals))
        return CommitTimes(arrivals, nothing, nothing)
    last = np.argmax([of_lane.signal for of_lane in times], axis=0)
    rows = np.arange(len(arrivals))
    queues, runs = np.stack([t.queue for t in times]), np.stack([t.run for t in times])
    return CommitTimes(arrivals, queues[last, rows], runs[last, rows])


def simulate_detection(arrivals: Floats, work: LaneWork, period_s: float, random: np.random.Generator) -> Floats:
    """Return how long after each commit the next periodic run ends, the first that can find its faults.

    The runs start at a random time within the first period; a run that finds its runners busy waits for them.
    """
    if not len(arrivals):
        return np.empty(0)
    phase = random.uniform(0.0, period_s)
    count = int(np.ceil(max(arrivals[-1] - phase, 0.0) / period_s)) + 2
    ticks = phase + period_s * np.arange(count, dtype=np.float64)
    ends = ticks + simulate_runs(ticks, work, random).signal
    ends = np.maximum.accumulate(ends)  # for a fault, the first verdict that comes, in the order of the runs
    return np.asarray(ends[np.searchsorted(ticks, arrivals)] - arrivals, dtype=np.float64)
