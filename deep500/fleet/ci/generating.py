"""Histories that are made up, of which the truth is known."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import FleetError
from deep500.core.random import check_seed, random_stream
from deep500.core.texts import shown
from deep500.fleet.outcome_table import OutcomeTable

__all__ = ["PlantedHistory", "generate_history"]

#: When the first commit was made (2026-01-01), and how long after another each is: half an hour.
_START_S, _STEP_S = 1_767_225_600.0, 1800.0


@dataclass(frozen=True)
class PlantedHistory:
    """What is true of a made-up history.

    Attributes:
        groups: Jobs that fail together, each group by itself; one of each tells all.
        cheapest: The cheapest job of each group: the best set when nothing is flaky or missing.
        idle: Jobs that never fail.
        breaks: How many times each group was broken.
        costs: What a run of each job costs, in hours.
    """

    groups: tuple[tuple[str, ...], ...]
    cheapest: tuple[str, ...]
    idle: tuple[str, ...]
    breaks: tuple[int, ...]
    costs: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def generate_history(
    *,
    commits: int = 400,
    groups: int = 4,
    jobs_per_group: int = 4,
    singletons: int = 4,
    idle: int = 2,
    break_rate: float = 0.03,
    mean_life: float = 3.0,
    flaky_rate: float = 0.0,
    missing_rate: float = 0.0,
    seed: int = 0,
) -> tuple[OutcomeTable, PlantedHistory]:
    """Make up a history with groups of jobs that always fail together.

    At each commit each group breaks with probability ``break_rate``, independently of the others, and stays broken
    for a geometric number of commits; each group breaks at least once in each half of the history. A flaky failure
    passes when it is run again, so it is there twice.

    Args:
        commits: How many.
        groups: Groups of several jobs.
        jobs_per_group: Jobs of each of them.
        singletons: Jobs that fail by themselves.
        idle: Jobs that never fail.
        break_rate: How often a group breaks, a commit.
        mean_life: Commits that it stays broken on average.
        flaky_rate: How often a job fails that would pass, and passes when it is run again.
        missing_rate: How often a job is cancelled.
        seed: Seed of all of it.

    Returns:
        The outcomes, and what is true of them.

    Raises:
        FleetError: A number or a rate is not accepted.
    """
    check_count("commits", commits, least=2, error=FleetError)
    for name, number in (("groups", groups), ("singletons", singletons), ("idle", idle)):
        check_count(name, number, least=0, error=FleetError)
    check_count("jobs_per_group", jobs_per_group, least=1, error=FleetError)
    _check_rates(mean_life, break_rate=break_rate, flaky_rate=flaky_rate, missing_rate=missing_rate)
    if groups + singletons == 0:
        raise FleetError("No job would ever fail; ask for groups or singletons.")
    check_seed(seed)
    names = [tuple(f"group{g}-job{n}" for n in range(jobs_per_group)) for g in range(groups)]
    names += [(f"single{n}",) for n in range(singletons)]
    idle_names = tuple(f"idle{n}" for n in range(idle))
    jobs = [job for group in names for job in group] + list(idle_names)
    costs = dict(zip(jobs, random_stream(seed, "costs").uniform(0.1, 2.0, len(jobs)).round(3).tolist(), strict=True))
    broken, breaks = _broken(commits, len(names), break_rate, mean_life, random_stream(seed, "breaks"))
    failed = np.zeros((commits, len(jobs)), dtype=np.bool_)
    failed[:, : len(jobs) - idle] = np.repeat(broken, [len(group) for group in names], axis=1)
    generator = random_stream(seed, "noise")
    flaky = ~failed & (generator.random(failed.shape) < flaky_rate)
    missing = generator.random(failed.shape) < missing_rate
    cheapest = tuple(min(group, key=lambda job: (costs[job], job)) for group in names)
    truth = PlantedHistory(tuple(names), cheapest, idle_names, tuple(breaks), costs)
    return _table(jobs, costs, failed, flaky & ~missing, missing), truth


def _check_rates(mean_life: float, **rates: float) -> None:
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise FleetError(f"{name} is {shown(rate)}; accepted are rates from 0 to below 1.")
    if not 1 <= mean_life < float("inf"):
        raise FleetError(f"mean_life is {shown(mean_life)}; accepted are finite numbers of commits from 1.")


def _broken(
    commits: int, groups: int, rate: float, mean_life: float, generator: np.random.Generator
) -> tuple[NDArray[np.bool_], list[int]]:
    """Return which groups are broken at which commits, [C, G], and how often each broke."""
    broken = np.zeros((commits, groups), dtype=np.bool_)
    breaks = []
    for group in range(groups):
        starts = generator.random(commits) < rate
        half = commits // 2
        for first, last in ((0, half), (half, commits)):
            if not starts[first:last].any():
                starts[generator.integers(first, last)] = True
        for start in np.flatnonzero(starts):
            broken[start : start + int(generator.geometric(1 / mean_life)), group] = True
        column = broken[:, group]
        breaks.append(int(column[0]) + int((column[1:] & ~column[:-1]).sum()))
    return broken, breaks


def _table(
    jobs: list[str],
    costs: dict[str, float],
    failed: NDArray[np.bool_],
    flaky: NDArray[np.bool_],
    missing: NDArray[np.bool_],
) -> OutcomeTable:
    """Return the outcomes commit by commit; a flaky failure comes before the run that passes."""
    commits, count = failed.shape
    status = np.where(missing, "cancelled", np.where(failed | flaky, "failed", "passed"))
    first = _rows(jobs, costs, np.indices((commits, count)).reshape(2, -1), status.ravel(), runs_before=0)
    rows, columns = np.nonzero(flaky)
    again = _rows(jobs, costs, np.stack([rows, columns]), np.full(len(rows), "passed"), runs_before=1)
    return OutcomeTable(pl.concat([first, again]).sort("started", maintain_order=True))


def _rows(
    jobs: list[str], costs: dict[str, float], places: NDArray[np.intp], status: NDArray[np.str_], runs_before: int
) -> pl.DataFrame:
    rows, columns = places
    hours = np.array([costs[job] for job in jobs])[columns]
    submitted = _START_S + _STEP_S * rows
    started = submitted + runs_before * (3600.0 * hours + 60.0)
    return pl.DataFrame(
        {
            "key": np.array(jobs)[columns].tolist(),
            "group": [f"c{row:06d}" for row in rows],
            "status": status.tolist(),
            "submitted": submitted,
            "started": started,
            "ended": started + 3600.0 * hours,
            "cost": hours,
        },
        schema_overrides={"key": pl.String, "group": pl.String, "status": pl.String},
    )
