"""What if: today's runners beside proposed ones, by what a commit waits for and what is no longer tested."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.errors import FleetError
from deep500.fleet.shard.cases import Case
from deep500.fleet.shard.lanes import Lane
from deep500.fleet.shard.planning import Plan, make_plan
from deep500.fleet.shard.queueing import LaneWork, poisson_arrivals, simulate_commits, simulate_detection
from deep500.measure.statistics.quantiles import Interval, quantile_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "FIGURES",
    "Change",
    "Coverage",
    "Load",
    "Scenario",
    "WhatIf",
    "interval_dict",
    "scenario_dict",
    "simulate_scenario",
    "what_if",
]

#: Most commits of all simulations together.
_MOST = 50_000_000

#: So many of the first commits of a simulation are left out: they meet empty queues.
_WARM_UP = 0.2

#: The figures of a replication, by name, and what each is.
FIGURES = {
    "signal_p50_s": "time to signal, p50",
    "signal_p90_s": "time to signal, p90",
    "signal_mean_s": "time to signal, mean",
    "queue_p50_s": "of it in the queue, p50",
    "queue_p90_s": "of it in the queue, p90",
    "queue_mean_s": "of it in the queue, mean",
    "run_p50_s": "of it running, p50",
    "run_p90_s": "of it running, p90",
    "run_mean_s": "of it running, mean",
    "detection_p50_s": "periodic lane finds a fault after, p50",
    "detection_p90_s": "periodic lane finds a fault after, p90",
    "detection_mean_s": "periodic lane finds a fault after, mean",
}


@dataclass(frozen=True)
class Load:
    """What comes to the runners.

    Attributes:
        per_hour: Commits an hour, at times that do not know of each other; or
        arrivals: The times of commits, recorded, in seconds.
        commits: How many are simulated, where they are not recorded.
        replications: How often, each with random numbers of its own.
        spread: Coefficient of variation of each shard's seconds.
        setup_s: Seconds that each shard takes before its first test.
        seed: Seed of the random numbers.

    Raises:
        FleetError: A number is out of range, or both or none of the arrivals is given.
    """

    per_hour: float | None = None
    arrivals: tuple[float, ...] | None = None
    commits: int = 2000
    replications: int = 20
    spread: float = 0.1
    setup_s: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if (self.per_hour is None) == (self.arrivals is None):
            raise FleetError("Commits arrive at a rate an hour, or at recorded times; give one of the two.")
        if self.arrivals is not None and (len(self.arrivals) < 10 or list(self.arrivals) != sorted(self.arrivals)):
            raise FleetError(
                f"{len(self.arrivals)} times of commits were given; ten or more, in rising order, are needed."
            )
        is_usable = 0 <= self.spread < float("inf") and 0 <= self.setup_s < float("inf")
        if self.commits < 10 or self.replications < 1 or not is_usable:
            raise FleetError(
                f"{self.replications} replications of {self.commits} commits with a spread of {self.spread:g} and a "
                f"set-up of {self.setup_s:g} s cannot be simulated; 10 commits, 1 replication and 0 are the least."
            )
        if self.commits * self.replications > _MOST:
            raise FleetError(
                f"{self.replications} replications of {self.commits} commits were given; accepted are up to {_MOST:,} "
                "commits in all."
            )

    @property
    def rate_per_hour(self) -> float:
        """Commits an hour."""
        if self.per_hour is not None:
            return self.per_hour
        times = self.arrivals or ()
        length = times[-1] - times[0]
        return (len(times) - 1) * 3600 / length if length > 0 else math.inf


@dataclass(frozen=True)
class Coverage:
    """Which tests a commit goes through.

    Attributes:
        every_commit: Tests that every commit goes through.
        periodic: Tests that run by the clock.
        never: Tests that need more GPUs than any runner has.
        failures_every_commit: How often, in the history, tests of the first kind failed.
        failures_periodic: Those of the second: found late.
        failures_never: Those of the third: lost.
    """

    every_commit: int
    periodic: int
    never: int
    failures_every_commit: int
    failures_periodic: int
    failures_never: int

    @property
    def tests(self) -> int:
        """How many tests there are."""
        return self.every_commit + self.periodic + self.never

    @property
    def failures(self) -> int:
        """How often tests failed."""
        return self.failures_every_commit + self.failures_periodic + self.failures_never


@dataclass(frozen=True)
class Scenario:
    """What was found for one set of runners.

    Attributes:
        plan: Which runner runs what.
        coverage: Which tests a commit goes through.
        samples: The figures of each replication, by the names of :data:`FIGURES`.
        utilisation: The share of time in which the runners of each lane are busy; from 1 on the queue grows without
            end, and what is waited for depends on how long is simulated.
        gpu_hours_per_commit: Hours of GPUs for a commit.
        gpu_hours_per_day: Hours of GPUs in a day, with the periodic runs.
    """

    plan: Plan
    coverage: Coverage
    samples: dict[str, tuple[float, ...]]
    utilisation: dict[str, float]
    gpu_hours_per_commit: float
    gpu_hours_per_day: float

    @property
    def gpus(self) -> float:
        """GPUs of all runners."""
        return sum(lane.gpus * lane.runners for lane in self.plan.lanes)

    @property
    def is_overloaded(self) -> bool:
        """Whether a lane gets more work than its runners can do."""
        return any(share >= 1 for share in self.utilisation.values())

    def estimate(self, figure: str) -> Interval | None:
        """Return a figure's median over the replications with its interval; ``None`` where there is no such figure."""
        return _median(self.samples.get(figure, ()))


@dataclass(frozen=True)
class Change:
    """How a figure changes, over replications with the same commits.

    Attributes:
        figure: Which.
        difference: The median of proposed less today's with its interval.
        verdict: ``shorter``, ``longer`` or ``undecided``.
    """

    figure: str
    difference: Interval | None
    verdict: str


@dataclass(frozen=True)
class WhatIf:
    """Today beside what is proposed.

    Attributes:
        load: What comes to the runners.
        today: What is found for today's.
        proposed: What is found for those that are proposed.
        changes: How the figures change that both have.
    """

    load: Load
    today: Scenario
    proposed: Scenario
    changes: tuple[Change, ...]


def what_if(
    cases: Sequence[Case],
    today: Sequence[Lane],
    proposed: Sequence[Lane],
    load: Load,
    *,
    unknown: str | float = "median",
    split_over_s: float | None = None,
    tell: Callable[[str], None] | None = None,
) -> WhatIf:
    """Return what changes with other runners. Both meet the same commits, so that their difference is not chance.

    Args:
        cases: Tests, or files, with their durations and needs.
        today: The runners that there are.
        proposed: Those that there could be.
        load: What comes to them.
        unknown: What cases of unknown duration take.
        split_over_s: Files that take longer are divided.
        tell: Is told how far it is.
    """
    tell = tell or (lambda _: None)
    scenarios = []
    for what, lanes in (("today's runners", today), ("proposed runners", proposed)):
        tell(f"simulating {what}")
        plan = make_plan(cases, lanes, unknown=unknown, split_over_s=split_over_s)
        scenarios.append(simulate_scenario(plan, cases, load))
    changes = tuple(
        _change(figure, scenarios[0].samples[figure], scenarios[1].samples[figure])
        for figure in FIGURES
        if figure in scenarios[0].samples and figure in scenarios[1].samples
    )
    return WhatIf(load, scenarios[0], scenarios[1], changes)


def simulate_scenario(plan: Plan, cases: Sequence[Case], load: Load) -> Scenario:
    """Return what commits wait for with a plan.

    Args:
        plan: Which runner runs what.
        cases: The cases that it was made of.
        load: What comes to the runners.
    """
    works = {lane: _work(plan, lane, load) for lane in plan.lanes}
    samples: dict[str, list[float]] = {}
    for replication in range(load.replications):
        for name, value in _replicated(works, load, replication).items():
            samples.setdefault(name, []).append(value)
    rate = load.rate_per_hour
    per_hour = {lane: rate if lane.period_s is None else 3600 / lane.period_s for lane in plan.lanes}
    hours = {lane: lane.gpus * sum(works[lane].seconds) / 3600 for lane in plan.lanes}
    return Scenario(
        plan,
        _coverage(plan, cases),
        {name: tuple(values) for name, values in samples.items()},
        {lane.name: per_hour[lane] * sum(works[lane].seconds) / 3600 / lane.runners for lane in plan.lanes},
        math.fsum(hours[lane] for lane in plan.lanes if not lane.is_periodic),
        24 * math.fsum(hours[lane] * per_hour[lane] for lane in plan.lanes),
    )


def _work(plan: Plan, lane: Lane, load: Load) -> LaneWork:
    """Return the work of a lane; a shard without tests starts no job."""
    seconds = tuple(shard.seconds + load.setup_s for shard in plan.of(lane) if shard.parts)
    return LaneWork(seconds, lane.runners, load.spread)


def _replicated(works: dict[Lane, LaneWork], load: Load, replication: int) -> dict[str, float]:
    """Return the figures of one replication; the commits depend on the seed and its number only."""
    coming, serving, finding = np.random.SeedSequence([load.seed, replication]).spawn(3)
    if load.arrivals is not None:
        arrivals = np.asarray(load.arrivals, dtype=np.float64) - load.arrivals[0]
    else:
        arrivals = poisson_arrivals(load.commits, load.rate_per_hour, np.random.default_rng(coming))
    first = int(_WARM_UP * len(arrivals))
    at_once = [work for lane, work in works.items() if not lane.is_periodic]
    times = simulate_commits(arrivals, at_once, np.random.default_rng(serving)).without(first)
    figures: dict[str, float] = {}
    for name, values in (("signal", times.signal), ("queue", times.queue), ("run", times.run)):
        figures |= _quantiles(name, values)
    random = np.random.default_rng(finding)
    found = [
        simulate_detection(arrivals, work, lane.period_s, random)[first:]
        for lane, work in works.items()
        if lane.period_s is not None and work.seconds
    ]
    return figures | (_quantiles("detection", np.concatenate(found)) if found else {})


def _quantiles(name: str, values: Floats) -> dict[str, float]:
    p50, p90 = np.quantile(values, [0.5, 0.9]).tolist()
    return {f"{name}_p50_s": p50, f"{name}_p90_s": p90, f"{name}_mean_s": float(values.mean())}


def _coverage(plan: Plan, cases: Sequence[Case]) -> Coverage:
    periodic = {case.name for s in plan.shards if s.lane.is_periodic for part in s.parts for case in part.cases}
    never = {case.name for case in plan.lost}
    groups = {"periodic": periodic, "never": never}
    failures = {what: sum(case.failures for case in cases if case.name in names) for what, names in groups.items()}
    total = sum(case.failures for case in cases)
    return Coverage(
        len(cases) - len(periodic) - len(never),
        len(periodic),
        len(never),
        total - failures["periodic"] - failures["never"],
        failures["periodic"],
        failures["never"],
    )


def _median(values: Sequence[float]) -> Interval | None:
    """Return the median with its interval; below six values none can be told, and the ends are the extremes."""
    if not values:
        return None
    if len(values) < 6:
        return Interval(float(np.median(values)), min(values), max(values), 0.95, 0.0, exact=False)
    return quantile_interval(values)


def _change(figure: str, today: Sequence[float], proposed: Sequence[float]) -> Change:
    difference = _median([new - old for old, new in zip(today, proposed, strict=True)])
    verdict = "undecided"
    if difference is not None and difference.coverage > 0:
        verdict = "shorter" if difference.high < 0 else "longer" if difference.low > 0 else "undecided"
    return Change(figure, difference, verdict)


def scenario_dict(scenario: Scenario) -> dict[str, Any]:
    """Return what was found for a set of runners as what JSON can hold."""
    plan = scenario.plan
    summaries = [plan.summary(lane) for lane in plan.lanes]
    return {
        "lanes": [
            {
                "lane": s.lane.name,
                "gpus": s.lane.gpus,
                "shards": s.lane.shards,
                "runners": s.lane.runners,
                "period_s": s.lane.period_s,
                "makespan_s": s.makespan_s,
                "lower_bound_s": s.lower_bound_s,
                "imbalance": s.imbalance,
                "utilisation": scenario.utilisation[s.lane.name],
            }
            for s in summaries
        ],
        "gpus": scenario.gpus,
        "overloaded": scenario.is_overloaded,
        "gpu_hours_per_commit": scenario.gpu_hours_per_commit,
        "gpu_hours_per_day": scenario.gpu_hours_per_day,
        "coverage": vars(scenario.coverage),
        "figures": {name: interval_dict(scenario.estimate(name)) for name in FIGURES if name in scenario.samples},
        "replications": {name: list(values) for name, values in scenario.samples.items()},
    }


def interval_dict(interval: Interval | None) -> dict[str, float] | None:
    """Return an interval as what JSON can hold."""
    if interval is None:
        return None
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high, "coverage": interval.coverage}
