"""Sampling until the stopping rule is satisfied, in sessions between which the workloads are built anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deep500.measure.clock import now_ns
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.rounds import Rebuild, Rounds
from deep500.measure.sampling.warm_up import steadiness, warm_up
from deep500.measure.statistics.stopping import Action, Decision

__all__ = ["Series", "Tell", "until_converged"]

#: Told ``(phase, samples so far, detail)``.
Tell = Callable[[str, int, str], None]

#: Sessions in the minimum time, where building costs little.
_SESSIONS = 32

#: Rounds after a build that do not count: memory is touched for the first time.
_FRESH_ROUNDS = 2

#: A build with its first rounds that takes longer is not repeated, in seconds.
_CHEAP_S = 0.1

#: A session lasts at least so many times as long as its build.
_SESSION_OVER_BUILD = 2


@dataclass
class Series:
    """The samples of one workload, in seconds a run.

    Attributes:
        samples: What counts.
        warm_up: What does not, taken before.
        calls_per_sample: Number of runs to a sample.
        steady: Whether the counted samples keep one level; ``None`` when there are too few to tell.
        steady_reason: What was found, for people.
    """

    samples: list[float] = field(default_factory=list)
    warm_up: list[float] = field(default_factory=list)
    calls_per_sample: int = 1
    steady: bool | None = None
    steady_reason: str = ""


class _Sessions:
    """Decides when the workloads are built anew, and does it."""

    def __init__(self, rounds: Rounds, plan: SamplingPlan, rebuild: Rebuild | None, first_run_s: float) -> None:
        self.starts = [0]
        self._rounds = rounds
        # A first run that compiles is not repeated for this.
        is_wanted = plan.builds is not None or first_run_s <= _CHEAP_S
        self._rebuild = rebuild if is_wanted and plan.builds != 1 else None
        self._is_asked_for = plan.builds is not None
        self._session_s = plan.minimum_time_s / (plan.builds or _SESSIONS)
        self._end_s = self._session_s

    def go_on(self, elapsed_s: float, samples: int) -> list[list[float]]:
        """Return the rounds of a new build that do not count; none where it is not time for one."""
        if self._rebuild is None or elapsed_s < self._end_s or samples == self.starts[-1]:
            return []
        before_s = self._rounds.run_s
        cost_s = self._rounds.restart(self._rebuild)
        table = [self._rounds.once() for _ in range(_FRESH_ROUNDS)]
        cost_s += self._rounds.run_s - before_s
        self.starts.append(samples)
        self._end_s = elapsed_s + cost_s + max(self._session_s, _SESSION_OVER_BUILD * cost_s)
        if cost_s > _CHEAP_S and not self._is_asked_for:
            self._rebuild = None
        return table

    def levelled(self, column: Sequence[float]) -> list[float]:
        """Return samples over the median of their session: builds differ in level, which is no drift."""
        parts = np.split(np.asarray(column), self.starts[1:])
        return [float(value) for part in parts for value in part / (np.median(part) or 1.0)]


def until_converged(
    rounds: Rounds, plan: SamplingPlan, tell: Tell, rebuild: Rebuild | None
) -> tuple[list[Series], bool | None, str]:
    """Warm up, and take rounds until the stopping rule is satisfied.

    Where building costs little, the workloads are built anew several times meanwhile (:class:`Builds` says why).

    Args:
        rounds: Times the workloads.
        plan: The settings.
        tell: Is told how far it is.
        rebuild: Builds the workloads anew; ``None`` where they cannot be.

    Returns:
        The samples of each workload, whether the rule was satisfied, and why sampling stopped.
    """
    warmed = warm_up(rounds.once, lambda durations: rounds.choose_calls(plan, durations), plan, tell)
    sessions = _Sessions(rounds, plan, rebuild, max(column[0] for column in warmed.columns))
    columns: list[list[float]] = [[] for _ in rounds.workloads]
    start_ns = now_ns()
    while True:
        for column, duration in zip(columns, rounds.once()):
            column.append(duration)
        size, elapsed_s = len(columns[0]), (now_ns() - start_ns) * 1e-9
        is_late = elapsed_s >= plan.time_limit_s
        if not is_late and not plan.stop.should_check(size):
            for row in sessions.go_on(elapsed_s, size):
                for column, duration in zip(warmed.columns, row):
                    column.append(duration)
            continue
        decision = _decide(columns, plan, out_of_time=is_late)
        tell("sampling", size, decision.reason)
        is_long_enough = elapsed_s >= plan.minimum_time_s or size >= plan.maximum_samples
        if decision.action is Action.NOT_CONVERGED or (decision.action is Action.CONVERGED and is_long_enough):
            break
    series = []
    for column, warm, calls in zip(columns, warmed.columns, rounds.calls):
        steady, reason = steadiness(sessions.levelled(column))
        series.append(Series(column, warm, calls, steady, f"{warmed.reason}; {reason}"))
    builds = f"; built {len(sessions.starts)} times" if len(sessions.starts) > 1 else ""
    return series, decision.action is Action.CONVERGED, f"{decision.reason}{builds}"


def _decide(columns: Sequence[Sequence[float]], plan: SamplingPlan, *, out_of_time: bool) -> Decision:
    """Ask the stopping rules of all that must be known; the first that wants more decides."""
    base = np.asarray(columns[0])
    questions: list[tuple[str, Any, Any]] = [("", plan.stop, base)]
    questions += [("ratio: ", plan.ratio_stop, np.asarray(column) / base) for column in columns[1:]]
    decision = None
    for what, stop, values in questions:
        answer = stop.decide(values, out_of_time=out_of_time)
        if answer.action is not Action.CONVERGED:
            return Decision(answer.action, what + answer.reason, answer.interval, answer.check_at)
        decision = decision or Decision(answer.action, what + answer.reason, answer.interval, answer.check_at)
    assert decision is not None
    return decision
