r"""Plans: which runner runs which tests.

Longest processing time first (Graham 1969, Bounds on multiprocessing timing anomalies): parts in the order of falling
duration, each to the runner that has the least so far. With m runners it takes at most :math:`4/3 - 1/(3m)` times as
long as the best plan there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import FleetError
from deep500.fleet.shard.cases import Assumed, Case, with_durations
from deep500.fleet.shard.lanes import Lane, smallest_that_fits
from deep500.fleet.shard.parts import Part, parts_of

__all__ = ["Baseline", "LaneSummary", "Plan", "Shard", "guarantee", "make_plan", "round_robin"]


@dataclass(frozen=True)
class Shard:
    """What one runner runs.

    Attributes:
        number: Its number in the plan, from 1.
        lane: Where.
        parts: What, in the order of falling duration.
    """

    number: int
    lane: Lane
    parts: tuple[Part, ...]

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return math.fsum(part.seconds for part in self.parts)

    @property
    def lines(self) -> list[str]:
        """What its runner is told, a line each."""
        return [line for part in self.parts for line in part.lines]


@dataclass(frozen=True)
class LaneSummary:
    """The figures of a lane.

    Attributes:
        lane: Which.
        parts: How many parts its shards have.
        total_s: How long all take together.
        makespan_s: How long its longest shard takes.
        lower_bound_s: No plan of these parts takes less: the longest part, or the even share.
        gpu_hours: Hours of GPUs that are held.
    """

    lane: Lane
    parts: int
    total_s: float
    makespan_s: float
    lower_bound_s: float
    gpu_hours: float

    @property
    def imbalance(self) -> float:
        """By how much the longest shard is longer than the mean one, as a share of it; 0 where there is nothing."""
        return self.makespan_s * self.lane.shards / self.total_s - 1 if self.total_s else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        return {
            "lane": self.lane.name,
            "gpus": self.lane.gpus,
            "shards": self.lane.shards,
            "period_s": self.lane.period_s,
            "parts": self.parts,
            "total_s": self.total_s,
            "makespan_s": self.makespan_s,
            "lower_bound_s": self.lower_bound_s,
            "imbalance": self.imbalance,
            "above_bound": self.above_bound,
            "guarantee": guarantee(self.lane.shards),
            "gpu_hours": self.gpu_hours,
        }

    @property
    def above_bound(self) -> float:
        """By how much, at most, it takes longer than the best plan, as a share of that."""
        return self.makespan_s / self.lower_bound_s - 1 if self.lower_bound_s else 0.0


@dataclass(frozen=True)
class Baseline:
    """What round robin takes in place of a plan.

    Attributes:
        lane: Where.
        order: In which order files were dealt.
        makespan_s: How long its longest shard takes.
        plan: The figures of the plan.
    """

    lane: Lane
    order: str
    makespan_s: float
    plan: LaneSummary

    @property
    def saved(self) -> float:
        """The share of its makespan that the plan saves."""
        return 1 - self.plan.makespan_s / self.makespan_s if self.makespan_s else 0.0

    @property
    def most(self) -> float:
        """The share that the best plan could save at most."""
        return 1 - self.plan.lower_bound_s / self.makespan_s if self.makespan_s else 0.0


@dataclass(frozen=True)
class Plan:
    """Which runner runs which tests.

    Attributes:
        method: How it was made.
        lanes: The lanes.
        shards: The shards, lane by lane.
        lost: Cases that need more GPUs than any runner has.
        assumed: What was taken for unknown durations.
        order: The place of each case among those that were given.
    """

    method: str
    lanes: tuple[Lane, ...]
    shards: tuple[Shard, ...]
    lost: tuple[Case, ...]
    assumed: Assumed
    order: dict[str, int]

    def of(self, lane: Lane) -> tuple[Shard, ...]:
        """Return the shards of a lane."""
        return tuple(shard for shard in self.shards if shard.lane == lane)

    def summary(self, lane: Lane) -> LaneSummary:
        """Return the figures of a lane."""
        shards = self.of(lane)
        parts = [part for shard in shards for part in shard.parts]
        total = math.fsum(part.seconds for part in parts)
        bound = max([total / lane.shards, *(part.seconds for part in parts)])
        makespan = max(shard.seconds for shard in shards)
        return LaneSummary(lane, len(parts), total, makespan, max(bound, 0.0), lane.gpus * total / 3600)

    @property
    def makespan_s(self) -> float:
        """How long a commit takes where every shard has a runner at once: the longest shard that is not periodic."""
        return max((shard.seconds for shard in self.shards if not shard.lane.is_periodic), default=0.0)

    def baselines(self) -> tuple[Baseline, ...]:
        """Return what round robin takes for the same cases, for each lane that every commit goes through.

        Files are taken in the order in which they were given, and in alphabetical order.
        """
        made = []
        for lane in self.lanes:
            if not lane.is_periodic:
                cases = list(dict.fromkeys(c for shard in self.of(lane) for part in shard.parts for c in part.cases))
                orders = (
                    ("as given", sorted(cases, key=lambda case: self.order[case.name])),
                    ("alphabetical", sorted(cases, key=lambda case: case.name)),
                )
                for order, ordered in orders:
                    other = round_robin(ordered, lane.shards)
                    made.append(Baseline(lane, order, other.makespan_s, self.summary(lane)))
        return tuple(made)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as what JSON can hold."""
        return {
            "method": self.method,
            "lanes": [self.summary(lane).to_dict() for lane in self.lanes],
            "shards": [
                {"shard": s.number, "lane": s.lane.name, "seconds": s.seconds, "run": s.lines} for s in self.shards
            ],
            "even_shares": sorted({p.file for s in self.shards for p in s.parts if p.is_even_share}),
            "lost": [{"test": case.name, "gpus": case.gpus} for case in self.lost],
            "held_back_by_their_mark": [
                {"test": case.name, "declared": case.declared, "gpus": case.gpus} for case in self.held_back
            ],
            "unknown_durations": vars(self.assumed),
            "round_robin": [
                {
                    "lane": b.lane.name,
                    "order": b.order,
                    "makespan_s": b.makespan_s,
                    "saved": b.saved,
                    "most_that_could_be_saved": b.most,
                }
                for b in self.baselines()
            ],
        }

    @property
    def held_back(self) -> tuple[Case, ...]:
        """Cases whose mark declares more GPUs than their runner has: they would be skipped until it is lowered."""
        return tuple(
            case
            for shard in self.shards
            for part in shard.parts
            for case in part.cases
            if case.declared is not None and case.declared > shard.lane.gpus
        )

    def shard(self, number: int) -> Shard:
        """Return a shard by its number.

        Raises:
            FleetError: There is none.
        """
        if not 1 <= number <= len(self.shards):
            raise FleetError(f"There is no shard {number}; the plan has the shards 1 to {len(self.shards)}.")
        return self.shards[number - 1]


def make_plan(
    cases: Iterable[Case],
    lanes: Sequence[Lane],
    *,
    split_over_s: float | None = None,
    unknown: str | float = "median",
    spill: bool = False,
) -> Plan:
    """Return a plan by longest processing time first.

    A case goes to the smallest runners that have the GPUs that it needs, and to a periodic lane only where no other
    has them. The cases of one file and lane stay together, so that a file is set up once.

    Args:
        cases: Tests, or files.
        lanes: The runners.
        split_over_s: Files that take longer are divided: by tests where they are known (a test is never divided), else
            into shares that are taken to be even.
        unknown: What cases of unknown duration take; see :func:`~deep500.fleet.shard.cases.with_durations`.
        spill: Whether larger runners of the same kind may take cases of smaller ones when they would be idle.

    Raises:
        FleetError: There is no lane, a limit is not above 0, or a name occurs twice.
    """
    if not lanes:
        raise FleetError("There are no runners; name at least one lane, such as 2x3.")
    if split_over_s is not None and not split_over_s > 0:
        raise FleetError(f"Files were to be divided over {split_over_s} s; a limit above 0 is needed.")
    known, assumed = with_durations(_checked(cases), unknown)
    own: dict[Lane, list[Case]] = {lane: [] for lane in lanes}
    lost = []
    for case in known:
        lane = smallest_that_fits(lanes, case.gpus)
        if lane is None:
            lost.append(case)
        else:
            own[lane].append(case)
    totals: dict[str, int] = {}
    for case in known:
        totals[case.file] = totals.get(case.file, 0) + 1
    parts = {lane: parts_of(own[lane], totals, split_over_s) for lane in lanes}
    return Plan("longest first", tuple(lanes), _assigned(parts, lanes, spill), tuple(lost), assumed, _order(known))


def round_robin(cases: Iterable[Case], shards: int, *, unknown: str | float = "median", gpus: float = 1.0) -> Plan:
    """Return the plan that looks at no duration: files in their order, each to the next shard in turn.

    It is what PyTorch's tests did before durations were recorded, and still do where none are
    (``tests[which_shard - 1 :: num_shards]``). Files are whole.
    """
    known, assumed = with_durations(_checked(cases), unknown)
    lane = Lane(max([gpus, *(case.gpus for case in known)]), shards, shards)
    parts = parts_of(known, {}, None)
    made = tuple(Shard(i + 1, lane, tuple(parts[i::shards])) for i in range(shards))
    return Plan("round robin", (lane,), made, (), assumed, _order(known))


def guarantee(shards: int) -> float:
    """Return how many times as long as the best plan one by longest processing time first takes at most."""
    return 4 / 3 - 1 / (3 * shards)


def _checked(cases: Iterable[Case]) -> list[Case]:
    checked = list(cases)
    seen: set[str] = set()
    for case in checked:
        if case.name in seen:
            raise FleetError(f"{case.name!r} occurs twice among the tests to be divided; each may occur once.")
        if case.seconds is not None and not (case.seconds >= 0 and math.isfinite(case.seconds)):
            raise FleetError(f"{case.name!r} takes {case.seconds} s; a finite number from 0 is needed.")
        seen.add(case.name)
    divided = {case.file for case in checked if not case.is_file} & seen
    if divided:
        raise FleetError(f"{min(divided)!r} stands beside tests of it; give the file, or its tests.")
    return checked


def _order(cases: Sequence[Case]) -> dict[str, int]:
    return {case.name: place for place, case in enumerate(cases)}


def _assigned(parts: dict[Lane, list[Part]], lanes: Sequence[Lane], spill: bool) -> tuple[Shard, ...]:
    """Give each part to the shard that may run it and has the least, those that fewest shards may run first."""
    places = [lane for lane in lanes for _ in range(lane.shards)]
    loads = [0.0] * len(places)
    given: list[list[Part]] = [[] for _ in places]
    for lane in sorted(lanes, key=lambda lane: -lane.gpus):
        fitting = [
            number
            for number, place in enumerate(places)
            if place == lane or (spill and place.is_periodic == lane.is_periodic and place.gpus >= lane.gpus)
        ]
        for part in sorted(parts[lane], key=lambda part: -part.seconds):
            number = min(fitting, key=lambda i: (loads[i], places[i].gpus, i))
            loads[number] += part.seconds
            given[number].append(part)
    return tuple(
        Shard(number + 1, place, tuple(sorted(own, key=lambda part: -part.seconds)))
        for number, (place, own) in enumerate(zip(places, given, strict=True))
    )
