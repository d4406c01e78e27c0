"""What each job costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import FleetError
from deep500.fleet.ci.history import History

__all__ = ["JobCosts", "job_costs"]


@dataclass(frozen=True)
class JobCosts:
    """What J jobs cost.

    Attributes:
        run: The mean cost of a run of each, [J].
        commit: The mean cost of each a commit: of a run x the share of commits at which it ran, [J].
        unit: ``hours``, or ``runs`` where no cost is known and each run counts 1.
        note: What was done about costs that are unknown; ``None`` where all are known.
    """

    run: NDArray[np.float64]
    commit: NDArray[np.float64]
    unit: str
    note: str | None


def job_costs(history: History) -> JobCosts:
    """Return the mean costs of the jobs in a history.

    The budget is a share of what is spent, so a job that runs at one commit in ten weighs a tenth of its run. Where
    no job's cost is known, a run of each counts 1; where some are, the others are taken to cost the mean of these.

    Raises:
        FleetError: The costs are too large to be summed up.
    """
    count = (~np.isnan(history.costs)).sum(0)
    with np.errstate(over="ignore"):
        total = np.nansum(history.costs, axis=0)
    run = np.divide(total, count, out=np.full(len(history.jobs), np.nan), where=count > 0)
    unknown = np.isnan(run)
    unit, note = "hours", None
    if not total.any():
        run[:] = 1.0
        unit, note = "runs", "No cost of a job is known (or all are 0): each run counts 1."
    elif unknown.any():
        run[unknown] = float(run[~unknown].mean())
        note = f"Jobs whose cost is unknown: {int(unknown.sum())}; each counts as the mean of the others."
    if not np.isfinite(run.sum()):
        raise FleetError("The costs of the jobs are too large to be summed up; correct the costs of the input.")
    share = history.judged.mean(0) if len(history.commits) else np.zeros(len(history.jobs))
    return JobCosts(run, run * share, unit, note)
