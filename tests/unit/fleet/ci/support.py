"""Histories for the tests, from small tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from deep500.fleet.ci.history import History
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable

#: Real data beside the project; tests that read it are skipped where it is not there.
IOFROL = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "ci" / "iofrol.csv.gz"


def table_of(*rows: tuple[str, str, str], start: float | None = 0.0) -> OutcomeTable:
    """Return the table of (commit, job, status); each is submitted a second after the one before."""
    return OutcomeTable.from_outcomes(
        Outcome(job, commit, status, submitted=None if start is None else start + number)
        for number, (commit, job, status) in enumerate(rows)
    )


def history_from(results: ArrayLike, jobs: Sequence[str] | None = None, costs: ArrayLike = 1.0) -> History:
    """Return a history without reruns; costs are those of a run of each job."""
    matrix = np.asarray(results, dtype=np.float32)
    count, number = matrix.shape
    nothing = np.zeros(matrix.shape, dtype=np.bool_)
    names = tuple(jobs) if jobs is not None else tuple(f"job{n:04d}" for n in range(number))
    each = np.broadcast_to(np.asarray(costs, dtype=np.float64), matrix.shape)
    return History(
        commits=tuple(f"c{n:04d}" for n in range(count)),
        jobs=names,
        results=matrix,
        failures=matrix == 0,
        flaky=nothing,
        reruns=nothing,
        costs=np.where(np.isnan(matrix), np.nan, each),
    )


def names_where(jobs: Sequence[str], chosen: Iterable[bool]) -> set[str]:
    """Return the names of chosen jobs."""
    return {job for job, is_chosen in zip(jobs, chosen, strict=True) if is_chosen}
