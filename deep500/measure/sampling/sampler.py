"""Samples of time in one process: rounds over one or several workloads, each in random order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deep500.core.errors import Deep500Error, MeasurementError
from deep500.core.texts import message_of
from deep500.measure.clock import calibrate_timer, now_ns
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.warm_up import WarmUp, steadiness, warm_up
from deep500.measure.statistics.stopping import Action, Decision
from deep500.measure.workload import Workload

__all__ = ["Samples", "Series", "sample", "timed_call"]

#: Told ``(phase, samples so far, detail)``.
Tell = Callable[[str, int, str], None]


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


@dataclass
class Samples:
    """What was measured in one process.

    Attributes:
        series: One for each workload.
        converged: Whether the stopping rule was satisfied; ``None`` when the workload limits its runs.
        stop_reason: Why sampling stopped, for people.
        run_s: Time of all runs, warm-up included.
        engine_s: All else from the first run to the last: clock, statistics, bookkeeping.
    """

    series: list[Series]
    converged: bool | None
    stop_reason: str
    run_s: float
    engine_s: float


def sample(
    workloads: Sequence[Workload],
    plan: SamplingPlan | None = None,
    stream: np.random.Generator | None = None,
    tell: Tell | None = None,
) -> Samples:
    """Measure workloads side by side in this process.

    A round times every workload once, in random order, so that all of them see the same machine. The first rounds warm
    up and do not count (:func:`deep500.measure.sampling.warm_up.warm_up`). Then rounds are added until the stopping
    rule is satisfied: one workload by the interval of its median, several by that of their ratios to the first as well.

    Args:
        workloads: What is measured; the first is the base of ratios.
        plan: How.
        stream: Draws the orders; a fixed one by default.
        tell: Is told how far it is, at each look of the stopping rule.

    Raises:
        MeasurementError: A run failed.
    """
    plan = plan or SamplingPlan()
    rounds = _Rounds(workloads, stream or np.random.default_rng(0))
    tell = tell or (lambda phase, samples, detail: None)
    start_ns = now_ns()
    limits = [workload.runs_per_launch for workload in workloads if workload.runs_per_launch is not None]
    found = _limited(rounds, min(limits)) if limits else _until_converged(rounds, plan, tell)
    engine_s = max(0.0, (now_ns() - start_ns) * 1e-9 - rounds.run_s)
    return Samples(*found, rounds.run_s, engine_s)


def timed_call(workload: Workload, calls: int) -> int:
    """Return the nanoseconds of so many runs of a workload; its device is idle before and after.

    Raises:
        MeasurementError: A run failed.
    """
    run = workload.run
    # A method call that does nothing would be part of the sample.
    has_device = type(workload).synchronize is not Workload.synchronize
    try:
        if has_device:
            workload.synchronize()
        if calls == 1:
            start = now_ns()
            run()
        else:
            repetitions = itertools.repeat(None, calls)
            start = now_ns()
            for _ in repetitions:
                run()
        if has_device:
            workload.synchronize()
        return now_ns() - start
    except Deep500Error:
        raise
    except (Exception, SystemExit) as error:  # a workload that ends the process has failed as well
        name = workload.spec or type(workload).__name__
        raise MeasurementError(f"A run of {name} failed: {type(error).__name__}: {message_of(error)}") from error


class _Rounds:
    """Times every workload once a round, and adds up the time of the runs."""

    def __init__(self, workloads: Sequence[Workload], stream: np.random.Generator) -> None:
        self.workloads = list(workloads)
        self.calls = [1] * len(self.workloads)
        self.run_s = 0.0
        self._stream = stream

    def once(self) -> list[float]:
        """Return the seconds a run of each workload."""
        durations = [0.0] * len(self.workloads)
        order = self._stream.permutation(len(self.workloads)) if len(self.workloads) > 1 else (0,)
        for index in order:
            elapsed_s = timed_call(self.workloads[index], self.calls[index]) * 1e-9
            self.run_s += elapsed_s
            durations[index] = elapsed_s / self.calls[index]
        return durations

    def choose_calls(self, plan: SamplingPlan, durations: Sequence[float]) -> None:
        """Set how many runs make a sample.

        Reading the clock must not spoil it, and all samples that are allowed must fill the time that is to be sampled:
        10,000 single runs of a microsecond would see but 10 ms of the machine.
        """
        spread_s = plan.minimum_time_s / plan.maximum_samples
        shortest_s = max(calibrate_timer().shortest_sample_s(plan.timer_share), spread_s)
        for index, duration_s in enumerate(durations):
            needed = math.ceil(shortest_s / max(duration_s, 1e-9))
            self.calls[index] = plan.calls_per_sample or max(1, needed)


def _limited(rounds: _Rounds, limit: int) -> tuple[list[Series], bool | None, str]:
    """Take as many runs as a workload allows; the first is warm-up unless it is the only one."""
    table = [rounds.once() for _ in range(limit)]
    first = 0 if limit == 1 else 1
    series = [
        Series(list(column[first:]), list(column[:first]), 1, *steadiness(column[first:])) for column in zip(*table)
    ]
    return series, None, f"the workload gives {limit} run{'s' if limit > 1 else ''} a process"


def _until_converged(rounds: _Rounds, plan: SamplingPlan, tell: Tell) -> tuple[list[Series], bool | None, str]:
    warmed: WarmUp = warm_up(rounds.once, lambda durations: rounds.choose_calls(plan, durations), plan, tell)
    columns: list[list[float]] = [[] for _ in rounds.workloads]
    start_ns = now_ns()
    while True:
        for column, duration in zip(columns, rounds.once()):
            column.append(duration)
        elapsed_s = (now_ns() - start_ns) * 1e-9
        is_late = elapsed_s >= plan.time_limit_s
        if not is_late and not plan.stop.should_check(len(columns[0])):
            continue
        decision = _decide(columns, plan, out_of_time=is_late)
        tell("sampling", len(columns[0]), decision.reason)
        if decision.action is Action.NOT_CONVERGED:
            break
        if decision.action is Action.CONVERGED and elapsed_s >= plan.minimum_time_s:
            break
        if decision.check_at is None and len(columns[0]) >= plan.maximum_samples:
            break
    series = []
    for index, (column, calls) in enumerate(zip(columns, rounds.calls)):
        steady, reason = steadiness(column)
        series.append(Series(column, warmed.columns[index], calls, steady, f"{warmed.reason}; {reason}"))
    return series, decision.action is Action.CONVERGED, decision.reason


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
