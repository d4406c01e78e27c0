"""A choice of jobs, how it was asked for, and what became of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import FleetError, near_miss
from deep500.core.random import check_seed
from deep500.core.texts import shown
from deep500.fleet.ci.clustering import check_cut, check_linkage
from deep500.fleet.ci.evaluating import Delay, Evaluation
from deep500.fleet.ci.history import History
from deep500.fleet.ci.job_costs import JobCosts
from deep500.fleet.ci.selection import Choice, CoverageProblem

__all__ = ["AIMS", "METHODS", "MethodResult", "Reduction", "ReductionPlan"]

#: Ways to choose jobs, and commits that they are chosen by.
METHODS = ("greedy", "layers", "exact", "clusters")
AIMS = ("failing", "new")


@dataclass(frozen=True)
class ReductionPlan:
    """How jobs are to be chosen.

    Attributes:
        budget: What the chosen jobs may cost, as a share of what all cost.
        keep: Patterns of jobs that have to be kept, also where they cost more than the budget.
        drop: Patterns of jobs that are not to be chosen; none may be one to keep.
        methods: Some of :data:`METHODS`; the choice of the first is what is proposed.
        aim: ``failing``: the jobs are chosen by all commits at which a job fails; ``new``: by those that newly fail.
        train_share: The share of commits, the oldest, that jobs are chosen from; the others judge the choice.
        draws: How many random choices each is compared with.
        resamples: How many resamples of commits are behind an interval.
        periodic: Jobs that are not chosen still run at each commit of this number; ``None`` for never.
        time_limit_s: How long the exact method may take.
        linkage: Of the clusters; see :func:`deep500.fleet.ci.correlate`.
        cut: Of the clusters.
        least_support: Of the clusters.
        seed: Of the random choices and the resamples.

    Raises:
        FleetError: A value is not accepted.
    """

    budget: float = 0.3
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    methods: tuple[str, ...] = METHODS
    aim: str = "failing"
    train_share: float = 0.7
    draws: int = 1000
    resamples: int = 9999
    periodic: int | None = None
    time_limit_s: float = 30.0
    linkage: str = "complete"
    cut: float = 0.1
    least_support: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        if not 0 < self.budget <= 1:
            raise FleetError(f"budget is {shown(self.budget)}; accepted are shares over 0 and up to 1, such as 0.3.")
        if not 0 < self.train_share < 1:
            raise FleetError(
                f"train_share is {shown(self.train_share)}; accepted are shares over 0 and below 1, such as 0.7."
            )
        if not self.methods:
            raise FleetError(f"No method was named. Accepted: {', '.join(METHODS)}.")
        for what, values, known in (("method", self.methods, METHODS), ("aim", (self.aim,), AIMS)):
            for value in values:
                if value not in known:
                    raise FleetError(
                        f"{what} is {shown(value)}.{near_miss(value, known)} Accepted: {', '.join(known)}."
                    )
        if len(set(self.methods)) < len(self.methods):
            raise FleetError(f"A method was named twice: {', '.join(self.methods)}.")
        check_count("draws", self.draws, least=1, error=FleetError)
        check_count("resamples", self.resamples, least=100, error=FleetError)
        check_count("least_support", self.least_support, least=2, error=FleetError)
        if self.periodic is not None:
            check_count("periodic", self.periodic, least=1, error=FleetError)
            if self.periodic >= 2**31:
                raise FleetError(f"periodic is {self.periodic}; accepted are numbers of commits below 2**31.")
        if not self.time_limit_s > 0:
            raise FleetError(f"time_limit_s is {shown(self.time_limit_s)}; accepted are seconds over 0.")
        check_linkage(self.linkage)
        check_cut(self.cut)
        check_seed(self.seed)


@dataclass(frozen=True)
class MethodResult:
    """What one method chose, and how it does on the commits that are held out.

    Attributes:
        choice: The choice.
        evaluation: How it does.
        cost_share: What it costs of all costs, in the commits that it was made from.
        held_out_cost: What it costs in the commits that are held out.
        held_out_saved: What is saved there.
        saved_share: The same as a share of all costs there.
        delay: When the other jobs find what it does not, if they still run now and then.
    """

    choice: Choice
    evaluation: Evaluation
    cost_share: float
    held_out_cost: float
    held_out_saved: float
    saved_share: float
    delay: Delay | None

    def to_dict(self, jobs: tuple[str, ...]) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        choice = self.choice
        return {
            "jobs": [job for job, is_chosen in zip(jobs, choice.chosen, strict=True) if is_chosen],
            "path": [jobs[place] for place in choice.path],
            "covered": choice.covered,
            "at_most": choice.at_most,
            "gap": choice.gap,
            "cost_share": self.cost_share,
            "held_out": self.evaluation.to_dict(),
            "held_out_cost": self.held_out_cost,
            "held_out_saved": self.held_out_saved,
            "saved_share": self.saved_share,
            "periodic": None if self.delay is None else self.delay.to_dict(),
            "notes": list(choice.notes),
        }


@dataclass(frozen=True)
class Reduction:
    """Which jobs are enough, by several methods.

    Attributes:
        plan: How they were asked for.
        history: The history of the jobs that a choice was made about.
        split: So many commits, the oldest, the choices were made from.
        costs: What the jobs cost in these.
        problem: What the choices solve.
        results: What came of each method, in the order of the plan.
        skipped: Why a method was not used.
        path_recalls: The cost share and the recall after each job that the greedy method chose, for a picture.
        newcomers: Jobs without a result before the commits that are held out; nothing was chosen about them.
        notes: What is to be known, in sentences.
    """

    plan: ReductionPlan
    history: History
    split: int
    costs: JobCosts
    problem: CoverageProblem
    results: dict[str, MethodResult]
    skipped: dict[str, str] = field(default_factory=dict)
    path_recalls: tuple[tuple[float, float], ...] = ()
    newcomers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def proposed(self) -> MethodResult:
        """What the first method chose that could be used."""
        return next(iter(self.results.values()))

    @property
    def chosen(self) -> tuple[str, ...]:
        """The jobs that are proposed."""
        return self._names(self.proposed.choice.chosen)

    def rows(self) -> list[dict[str, Any]]:
        """Return what is known of each job, the proposed ones first, then by cost."""
        past, covers, chosen = self.history.rows(0, self.split), self.problem.covers, self.proposed.choice.chosen
        weights, kept = self.problem.weights, self.problem.kept
        alone = covers & np.asarray(covers.sum(1) == 1)[:, None]
        with_chosen = covers & np.asarray(covers[:, chosen].any(1))[:, None]
        rates = past.flaky_rates()
        failures, found, by_itself = (np.asarray(weights @ sets) for sets in (covers, with_chosen, alone))
        return [
            {
                "job": self.history.jobs[n],
                "state": "must keep" if kept[n] else "keep" if chosen[n] else "drop",
                "cost_of_a_run": float(self.costs.run[n]),
                "cost_a_commit": float(self.costs.commit[n]),
                "failing_commits": int(failures[n]),
                "failing_alone": int(by_itself[n]),
                "found_by_kept": float(found[n] / failures[n]) if failures[n] else None,
                "flaky_rate": float(rates[n]),
            }
            for n in np.lexsort((-self.costs.commit, ~chosen, ~kept))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold."""
        jobs = self.history.jobs
        return {
            "parameters": asdict(self.plan),
            "commits": {"chosen_from": self.split, "held_out": len(self.history.commits) - self.split},
            "cost_unit": self.costs.unit,
            "cost_a_commit": float(self.costs.commit.sum()),
            "failing_commits": self.problem.total,
            "proposed": list(self.chosen),
            "methods": {name: result.to_dict(jobs) for name, result in self.results.items()},
            "skipped": self.skipped,
            "jobs": self.rows(),
            "greedy_path": [list(point) for point in self.path_recalls],
            "newcomers": list(self.newcomers),
            "notes": list(self.notes),
        }

    def _names(self, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(job for job, is_chosen in zip(self.history.jobs, chosen, strict=True) if is_chosen)
