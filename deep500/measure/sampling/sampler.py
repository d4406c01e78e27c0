"""Samples of time in one process: rounds over one or several workloads, each in random order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.clock import now_ns
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.rounds import Rebuild, Rounds
from deep500.measure.sampling.sessions import Series, Tell, until_converged
from deep500.measure.sampling.warm_up import steadiness
from deep500.measure.workload import Workload

__all__ = ["Samples", "Series", "Tell", "sample"]


@dataclass
class Samples:
    """What was measured in one process.

    Attributes:
        series: One for each workload.
        converged: Whether the stopping rule was satisfied; ``None`` when the workload limits its runs.
        stop_reason: Why sampling stopped, for people.
        run_s: Time of all runs, warm-up included.
        engine_s: All else from the first run to the last, without building: clock, statistics, bookkeeping.
        workloads: The workloads as they were built last.
    """

    series: list[Series]
    converged: bool | None
    stop_reason: str
    run_s: float
    engine_s: float
    workloads: list[Workload]


def sample(
    workloads: Sequence[Workload],
    plan: SamplingPlan | None = None,
    stream: np.random.Generator | None = None,
    tell: Tell | None = None,
    rebuild: Rebuild | None = None,
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
        rebuild: Builds the workloads anew, in the same order, and closes those before; ``None`` where they cannot be.

    Raises:
        MeasurementError: A run failed.
    """
    plan = plan or SamplingPlan()
    rounds = Rounds(workloads, stream or np.random.default_rng(0))
    tell = tell or (lambda phase, samples, detail: None)
    start_ns = now_ns()
    limit = _limit(workloads)
    found = until_converged(rounds, plan, tell, rebuild) if limit is None else _limited(rounds, limit)
    engine_s = max(0.0, (now_ns() - start_ns) * 1e-9 - rounds.run_s - rounds.rebuild_s)
    return Samples(*found, rounds.run_s, engine_s, rounds.workloads)


def _limit(workloads: Sequence[Workload]) -> int | None:
    """Return how many runs the workloads give, ``None`` for as many as wanted."""
    limits = [workload.runs_per_launch for workload in workloads]
    for workload, limit in zip(workloads, limits):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise MeasurementError(
                f"runs_per_launch of {workload.spec} is {limit!r}; accepted are whole numbers from 1, and None."
            )
    if len(set(limits)) > 1:
        told = ", ".join("as many as wanted" if limit is None else str(limit) for limit in limits)
        raise MeasurementError(
            f"The workloads give different numbers of runs a process ({told}), so they cannot run side by side. Give "
            "each processes of its own (pairing launches)."
        )
    return limits[0]


def _limited(rounds: Rounds, limit: int) -> tuple[list[Series], bool | None, str]:
    """Take as many runs as a workload allows; the first is warm-up unless it is the only one."""
    table = [rounds.once() for _ in range(limit)]
    first = 0 if limit == 1 else 1
    series = [
        Series(list(column[first:]), list(column[:first]), 1, *steadiness(column[first:])) for column in zip(*table)
    ]
    return series, None, f"the workload gives {limit} run{'s' if limit > 1 else ''} a process"
