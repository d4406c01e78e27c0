"""Choosing the jobs that are enough, and judging the choice by commits that it was not made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import FleetError
from deep500.core.random import random_stream
from deep500.core.texts import shown
from deep500.fleet.ci._job_names import matching
from deep500.fleet.ci.evaluating import NOTHING_TO_CHOOSE, Delay, delay_of, evaluate, found_by
from deep500.fleet.ci.history import History
from deep500.fleet.ci.job_costs import JobCosts, job_costs
from deep500.fleet.ci.newly_failing import lives, newly_failing
from deep500.fleet.ci.random_choice import choose_randomly
from deep500.fleet.ci.reduction import MethodResult, Reduction, ReductionPlan
from deep500.fleet.ci.representatives import choose_representatives
from deep500.fleet.ci.selection import Choice, CoverageProblem, choose_exactly, choose_greedily, choose_in_layers

__all__ = ["reduce_jobs"]


def reduce_jobs(
    history: History, plan: ReductionPlan | None = None, tell: Callable[[str], None] | None = None
) -> Reduction:
    """Choose jobs by the oldest commits of a history, and judge the choice by the others.

    Args:
        history: The results.
        plan: How jobs are to be chosen; by default as :class:`ReductionPlan` says.
        tell: Is told what is being done.

    Raises:
        FleetError: A pattern matches no job, a job is both to be kept and to be dropped, all are to be dropped, there
            are too few commits, or nothing fails in those to choose from.
    """
    plan = plan or ReductionPlan()
    tell = tell or (lambda text: None)
    split = int(plan.train_share * len(history.commits) + 1e-9)  # 0.29 x 100 is 28.999999999999996
    if not 0 < split < len(history.commits):
        raise FleetError(
            f"{len(history.commits)} commits cannot be parted at {plan.train_share:g}; "
            "at least one on either side is needed."
        )
    keep, drop = _named(history, plan.keep, "keep"), _named(history, plan.drop, "drop")
    _check_named(history, keep, drop)
    known = np.asarray(history.judged[:split].any(0))
    newcomers = tuple(job for job, is_known in zip(history.jobs, known, strict=True) if not is_known)
    places = np.flatnonzero(known)
    part = history.columns(places.tolist())
    costs = job_costs(part.rows(0, split))
    broken = newly_failing(part)
    problem = _problem(part, split, plan, costs, broken, keep[places], drop[places])
    rows = split + np.flatnonzero(broken[split:].any(1))
    held_out = _HeldOut(part, split, rows, broken[rows])
    results: dict[str, MethodResult] = {}
    skipped: dict[str, str] = {}
    for method in plan.methods:
        tell(f"{method}: choosing from {len(part.jobs):,} jobs")
        try:
            choice = _choose(method, problem, part.rows(0, split), plan)
        except FleetError as error:
            skipped[method] = str(error)
            continue
        tell(f"{method}: comparing with {plan.draws:,} random choices")
        results[method] = held_out.judge(choice, problem, costs, plan)
    if not results:
        raise FleetError(next(iter(skipped.values())))
    return Reduction(
        plan=plan,
        history=part,
        split=split,
        costs=costs,
        problem=problem,
        results=results,
        skipped=skipped,
        path_recalls=held_out.path(results, problem),
        newcomers=newcomers,
        notes=_notes(part, problem, costs, newcomers, len(rows)),
    )


def _named(history: History, patterns: tuple[str, ...], what: str) -> NDArray[np.bool_]:
    named = np.zeros(len(history.jobs), dtype=np.bool_)
    named[matching(history.jobs, patterns, f"The pattern of --{what}")] = True
    return named


def _check_named(history: History, keep: NDArray[np.bool_], drop: NDArray[np.bool_]) -> None:
    both = np.flatnonzero(keep & drop)
    if len(both):
        others = f" and {len(both) - 1:,} more" if len(both) > 1 else ""
        raise FleetError(
            f"Both --keep and --drop match {shown(history.jobs[both[0]])}{others}; a job is kept or dropped, so make "
            "one of the patterns narrower."
        )
    if drop.all():
        raise FleetError(
            f"The patterns of --drop match all of the jobs ({len(drop):,}), and nothing is left to choose; leave some."
        )


def _problem(
    history: History,
    split: int,
    plan: ReductionPlan,
    costs: JobCosts,
    broken: NDArray[np.bool_],
    keep: NDArray[np.bool_],
    drop: NDArray[np.bool_],
) -> CoverageProblem:
    failures = (history.failures if plan.aim == "failing" else broken)[:split]
    if not failures.any():
        what = "fails" if plan.aim == "failing" else "newly fails"
        raise FleetError(
            f"No job {what} in the first {split} of {len(history.commits)} commits, so nothing tells which to keep. "
            "Read more commits, or choose from a larger share of them."
        )
    budget = plan.budget * float(costs.commit.sum())
    return CoverageProblem.of_failures(history.jobs, failures, costs.commit, budget, keep, ~drop & ~keep)


def _choose(method: str, problem: CoverageProblem, past: History, plan: ReductionPlan) -> Choice:
    if method == "exact":
        return choose_exactly(problem, plan.time_limit_s)
    if method == "clusters":
        return choose_representatives(
            problem, past, linkage=plan.linkage, cut=plan.cut, least_support=plan.least_support
        )
    return choose_in_layers(problem) if method == "layers" else choose_greedily(problem)


class _HeldOut:
    """The commits that no choice was made from."""

    def __init__(self, history: History, split: int, rows: NDArray[np.intp], broken: NDArray[np.bool_]) -> None:
        self._broken = broken
        self._lives = lives(history, rows, broken)
        self._runs = history.judged[split:].sum(0)

    def judge(self, choice: Choice, problem: CoverageProblem, costs: JobCosts, plan: ReductionPlan) -> MethodResult:
        """Return how a choice does."""
        cost = problem.cost(choice.chosen)
        random = choose_randomly(problem, cost, plan.draws, random_stream(plan.seed, "random choice", choice.method))
        evaluation = evaluate(
            self._broken,
            choice.chosen,
            random,
            float((random @ problem.costs).mean()),
            random_stream(plan.seed, "resamples", choice.method),
            plan.resamples,
        )
        if evaluation.commits and _nothing_left(choice, problem, random):
            evaluation = replace(evaluation, verdict=NOTHING_TO_CHOOSE)
        spent = costs.run * self._runs
        saved, whole = float(spent[~choice.chosen].sum()), float(spent.sum())
        share = saved / whole if whole else 0.0
        return MethodResult(
            choice=choice,
            evaluation=evaluation,
            cost_share=cost / float(problem.costs.sum()),
            held_out_cost=whole - saved,
            held_out_saved=saved,
            saved_share=share,
            delay=None if plan.periodic is None else self._delay(choice, plan.periodic, share),
        )

    def path(self, results: Mapping[str, MethodResult], problem: CoverageProblem) -> tuple[tuple[float, float], ...]:
        """Return the cost share and the recall of the first jobs that were chosen greedily, of each number of them."""
        choice = max((result.choice for result in results.values()), key=lambda choice: len(choice.path))
        if not len(self._broken) or not choice.path:
            return ()
        sets = np.tile(problem.kept, (len(choice.path) + 1, 1))
        for number, place in enumerate(choice.path, 1):
            sets[number:, place] = True
        shares = sets @ problem.costs / problem.costs.sum()
        recalls = found_by(self._broken, sets).mean(1)
        return tuple((float(share), float(recall)) for share, recall in zip(shares, recalls, strict=True))

    def _delay(self, choice: Choice, every: int, saved_share: float) -> Delay | None:
        if not len(self._broken):
            return None
        return delay_of(found_by(self._broken, choice.chosen[None, :])[0], self._lives, every, saved_share)


def _nothing_left(choice: Choice, problem: CoverageProblem, random: NDArray[np.bool_]) -> bool:
    """Whether no other jobs could have been chosen for the cost: none besides those to keep, or all."""
    own = choice.chosen[problem.candidates]
    return bool((not own.any() or own.all()) and (random == choice.chosen).all())


def _notes(
    history: History, problem: CoverageProblem, costs: JobCosts, newcomers: tuple[str, ...], held_out: int
) -> tuple[str, ...]:
    notes = []
    kept = problem.cost(problem.kept)
    if kept > problem.budget + 1e-9 * float(problem.costs.sum()):
        notes.append(
            f"The jobs that have to be kept cost {kept / problem.costs.sum():.1%} of all, more than the budget; they "
            "are kept, and nothing is chosen besides."
        )
    if costs.note is not None:
        notes.append(costs.note)
    out_of_reach = problem.total - problem.covered(problem.kept | problem.candidates)
    if out_of_reach:
        notes.append(f"Failing commits that only jobs find which are not to be chosen: {out_of_reach}.")
    if newcomers:
        notes.append(
            f"Jobs without a result in the commits that jobs are chosen from: {len(newcomers)}; nothing is said about "
            "them, and they count neither as cost nor as failures."
        )
    if held_out == 0:
        notes.append("No commit that is held out newly fails, so nothing tells how good the choice is.")
    excused = int((history.results == 0).sum() - history.failures.sum())
    if excused:
        notes.append(f"Failures with a rerun that passed, which are not counted as failures to find: {excused}.")
    return tuple(notes)
