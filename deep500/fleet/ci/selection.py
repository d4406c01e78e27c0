"""Choosing jobs that find as many failing commits as possible for what they may cost: maximum coverage on a budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from deep500.core.errors import FleetError

__all__ = ["LARGEST_EXACT", "Choice", "CoverageProblem", "choose_exactly", "choose_greedily", "choose_in_layers"]

#: Most failures (distinct sets of failing jobs, times the jobs in them) that the exact method takes on.
LARGEST_EXACT = 500_000

#: A cost may pass the budget by this share of all costs: what sums of floating-point numbers differ by.
_SLACK = 1e-9


@dataclass(frozen=True)
class CoverageProblem:
    """Which jobs would have found which failing commits, and what they cost.

    Attributes:
        jobs: The names, by which ties are broken, [J].
        covers: Whether each job finds each set of failures, [S, J]; every row is another set.
        weights: How many commits have each set, [S].
        costs: Costs, at least 0, [J].
        budget: What the chosen jobs may cost together, with those that have to be kept.
        kept: Jobs that have to be kept, whatever they cost, [J].
        candidates: Jobs that may be chosen besides, [J].
    """

    jobs: tuple[str, ...]
    covers: NDArray[np.bool_]
    weights: NDArray[np.int64]
    costs: NDArray[np.float64]
    budget: float
    kept: NDArray[np.bool_]
    candidates: NDArray[np.bool_]

    @classmethod
    def of_failures(
        cls,
        jobs: tuple[str, ...],
        failures: NDArray[np.bool_],
        costs: NDArray[np.float64],
        budget: float,
        kept: NDArray[np.bool_] | None = None,
        candidates: NDArray[np.bool_] | None = None,
    ) -> CoverageProblem:
        """Return the problem of failures, [C, J]; commits with the same failing jobs become one set."""
        failing = failures[failures.any(1)]
        packed = np.packbits(failing, axis=1)
        _, first, count = np.unique(packed, axis=0, return_index=True, return_counts=True)
        none = np.zeros(len(jobs), dtype=np.bool_)
        kept = none if kept is None else kept
        candidates = ~none if candidates is None else candidates
        return cls(jobs, failing[first], count.astype(np.int64), costs, budget, kept, candidates & ~kept)

    @property
    def total(self) -> int:
        """How many failing commits there are."""
        return int(self.weights.sum())

    def covered(self, chosen: NDArray[np.bool_]) -> int:
        """Return how many failing commits at least one of the jobs finds."""
        return int(self.weights[self.covers[:, chosen].any(1)].sum())

    def cost(self, chosen: NDArray[np.bool_]) -> float:
        """Return what jobs cost together."""
        return float(self.costs[chosen].sum())

    def room(self, chosen: NDArray[np.bool_]) -> float:
        """Return what is left of the budget; at least 0."""
        return max(0.0, self.budget - self.cost(chosen)) + _SLACK * float(self.costs.sum())


@dataclass(frozen=True)
class Choice:
    """A set of jobs.

    Attributes:
        method: How it was found.
        chosen: The jobs, [J].
        covered: How many failing commits they find of those that they were chosen by.
        at_most: How many any set within the budget can find; ``None`` where that is unknown.
        path: The jobs in the order in which they were chosen, after those that were to be kept.
        notes: What is to be known of it, in sentences.
    """

    method: str
    chosen: NDArray[np.bool_]
    covered: int
    at_most: int | None = None
    path: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> float | None:
        """How far it may be from the best, as a share of what the best can find; 0 where it is the best."""
        if self.at_most is None:
            return None
        return 0.0 if self.at_most == 0 else (self.at_most - self.covered) / self.at_most


def choose_greedily(problem: CoverageProblem) -> Choice:
    """Choose again and again the job that finds most more failing commits for its cost, of those that fit.

    Ties go to the job that finds more, then to the cheaper, then to the first by name. It ends when nothing more is
    found, so it may leave some of the budget. The same is done once more beginning with the one job that finds most,
    and the better of the two is taken (the first on a tie): together they find at least (1 - 1/e)/2 of what is
    possible, and with equal costs the first alone finds at least 1 - 1/e.

    Source: S. Khuller, A. Moss, J. Naor, "The budgeted maximum coverage problem", Inf. Process. Lett. 70 (1999).
    """
    first = _extended(problem, ())
    best = first
    alone = _best_alone(problem)
    if alone is not None and (not first or first[0] != alone):
        second = _extended(problem, (alone,))
        if problem.covered(_with(problem, second)) > problem.covered(_with(problem, first)):
            best = second
    chosen = _with(problem, best)
    return Choice("greedy", chosen, problem.covered(chosen), path=best)


def choose_in_layers(problem: CoverageProblem) -> Choice:
    """Choose greedily, and then again from the jobs that are left, until the budget is spent.

    The second layer finds every commit by a second job, the third by a third. It changes nothing of what is found
    here; but where jobs run seldom, or fail for more than one reason, later commits are other ones.
    """
    path = choose_greedily(problem).path
    more = path
    while more:
        chosen = _with(problem, path)
        rest = replace(problem, kept=chosen, candidates=problem.candidates & ~chosen)
        more = _extended(rest, (), afresh=True)
        path += more
    chosen = _with(problem, path)
    return Choice("layers", chosen, problem.covered(chosen), path=path)


def choose_exactly(problem: CoverageProblem, time_limit_s: float = 30.0) -> Choice:
    """Choose the jobs that find most failing commits, by mixed-integer programming; of several such sets the cheapest.

    Maximises the weight of covered sets with a binary variable a job and one from 0 to 1 a set. Where the time is
    over first, the best that was found is taken, or what the greedy method finds where that is no worse; how far it
    may be from the best is in :attr:`Choice.gap`.

    Source: HiGHS, through :func:`scipy.optimize.milp`.

    Raises:
        FleetError: The problem is larger than :data:`LARGEST_EXACT`.
    """
    greedy = choose_greedily(problem)
    places = np.flatnonzero(problem.candidates)
    base = problem.covered(problem.kept)
    rows = ~problem.covers[:, problem.kept].any(1) & problem.covers[:, places].any(1)
    covers, weights = problem.covers[np.ix_(rows, places)], problem.weights[rows]
    if covers.sum() > LARGEST_EXACT:
        raise FleetError(
            f"The exact method takes up to {LARGEST_EXACT:,} failures of jobs in distinct commits; here are "
            f"{int(covers.sum()):,}. Use the greedy one, or read fewer commits."
        )
    if not len(weights):
        return Choice("exact", problem.kept.copy(), base, base)
    values, bound = _solve(problem, covers, weights, places, time_limit_s)
    at_most = base + (int(weights.sum()) if bound is None else min(bound, int(weights.sum())))
    chosen, notes = greedy.chosen, []
    if values is not None:
        found = problem.kept.copy()
        found[places[values > 0.5]] = True
        better = (problem.covered(found), -problem.cost(found)) > (greedy.covered, -problem.cost(greedy.chosen))
        if better and problem.cost(found & ~problem.kept) <= problem.room(problem.kept):
            chosen = found
    covered = problem.covered(chosen)
    if covered < at_most:
        notes.append(
            f"The exact method stopped after {time_limit_s:g} s: {covered} failing commits are found, no set finds "
            f"more than {at_most}."
        )
    return Choice("exact", chosen, covered, at_most, notes=tuple(notes))


def _solve(
    problem: CoverageProblem,
    covers: NDArray[np.bool_],
    weights: NDArray[np.int64],
    places: NDArray[np.intp],
    time_limit_s: float,
) -> tuple[NDArray[np.float64] | None, int | None]:
    """Return the variables of the jobs, and the most that any set can find; each ``None`` where it was not found."""
    sets, jobs = covers.shape
    scale = float(problem.costs[places].sum()) or 1.0
    costs = problem.costs[places] / scale
    # The cheaper of two sets that find the same: all costs together weigh less than one commit.
    objective = np.concatenate([0.5 * costs, -weights.astype(np.float64)])
    found = sparse.hstack([-sparse.csr_array(covers.astype(np.float64)), sparse.eye_array(sets)], format="csr")
    spent = sparse.csr_array(np.concatenate([costs, np.zeros(sets)])[None, :])
    solution = milp(
        objective,
        constraints=[
            LinearConstraint(found, -np.inf, 0.0),
            LinearConstraint(spent, -np.inf, problem.room(problem.kept) / scale),
        ],
        bounds=Bounds(0.0, 1.0),
        integrality=np.concatenate([np.ones(jobs), np.zeros(sets)]),
        options={"time_limit": time_limit_s, "mip_rel_gap": 0.0},
    )
    bound = solution.mip_dual_bound
    at_most = None if bound is None or not np.isfinite(bound) else int(np.floor(0.5 - bound + 1e-6))
    return (None if solution.x is None else solution.x[:jobs]), at_most


def _with(problem: CoverageProblem, places: tuple[int, ...]) -> NDArray[np.bool_]:
    chosen = problem.kept.copy()
    chosen[list(places)] = True
    return chosen


def _best_alone(problem: CoverageProblem) -> int | None:
    """Return the job that finds most beside those to be kept, of those that fit."""
    gains = _gains(problem)
    fitting = problem.candidates & (problem.costs <= problem.room(problem.kept)) & (gains > 0)
    places = np.flatnonzero(fitting)
    return min((int(n) for n in places), key=lambda n: (-gains[n], problem.costs[n], problem.jobs[n]), default=None)


def _uncovered(problem: CoverageProblem, afresh: bool) -> NDArray[np.bool_]:
    """Return which sets are to be found: those that no job to be kept finds; afresh all."""
    return np.asarray(~problem.covers[:, problem.kept].any(1) | afresh)


def _gains(problem: CoverageProblem, afresh: bool = False) -> NDArray[np.int64]:
    uncovered = _uncovered(problem, afresh)
    return (problem.weights[uncovered] @ problem.covers[uncovered]).astype(np.int64)


def _extended(problem: CoverageProblem, start: tuple[int, ...], afresh: bool = False) -> tuple[int, ...]:
    """Return the jobs that are chosen one after the other, beginning with some."""
    names = np.argsort(np.argsort(np.array(problem.jobs)))
    uncovered = _uncovered(problem, afresh)
    gains, costs = _gains(problem, afresh), problem.costs
    chosen = problem.kept.copy()
    path: list[int] = []
    while True:
        room = problem.room(problem.kept) - float(costs[path].sum())
        if len(path) < len(start):
            place = start[len(path)]
        else:
            open_to = np.flatnonzero(problem.candidates & ~chosen & (gains > 0) & (costs <= room))
            if not len(open_to):
                return tuple(path)
            gain, cost = gains[open_to], costs[open_to]
            rate = np.divide(gain, cost, out=np.full(len(gain), np.inf), where=cost > 0)
            place = int(open_to[np.lexsort((names[open_to], cost, -gain, -rate))[0]])
        chosen[place] = True
        path.append(place)
        newly = uncovered & problem.covers[:, place]
        gains = gains - problem.weights[newly] @ problem.covers[newly]
        uncovered &= ~newly
