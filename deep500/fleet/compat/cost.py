"""What a campaign may cost: at most, and by what older campaigns took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.fleet.compat.cell import Cell
from deep500.fleet.compat.matrix import Matrix

if TYPE_CHECKING:
    from deep500.fleet.outcome_table import OutcomeTable

__all__ = ["estimate_cost"]

#: Resamples of the bootstrap.
_RESAMPLES = 1000

Hours = tuple[float, float]


def estimate_cost(cells: Sequence[Cell], matrix: Matrix, older: OutcomeTable | None = None, seed: int = 0) -> Any:
    """Return what the cells may cost, as what JSON can hold.

    At most: every cell makes its own environment and uses all the time that it has. Expected: the mean duration of an
    older campaign's cells of the same framework, of all of its cells where it had none of it; with a 95 % interval by
    the bootstrap over these durations (percentiles). Without an older campaign: what the matrix' key ``cost`` says,
    where environments are counted once.

    Args:
        cells: What is tried.
        matrix: Where its hints stand.
        older: Outcomes of older campaigns.
        seed: Seed of the bootstrap.
    """
    environments = len({(cell.python, cell.pip_options, cell.requirements) for cell in cells})
    most = sum(cell.environment_timeout_s + cell.timeout_s for cell in cells) / 3600.0
    most_gpu = sum((cell.environment_timeout_s + cell.timeout_s) * cell.gpus for cell in cells) / 3600.0
    estimate: dict[str, Any] = {
        "cells": len(cells),
        "environments": environments,
        "at_most": {"job_hours": most, "gpu_hours": most_gpu},
        "expected": None,
        "basis": "unknown: no older campaign was given, and the matrix says nothing of the cost",
    }
    durations = _durations(older) if older is not None else {}
    hints = matrix.content.get("cost")
    if durations:
        estimate["expected"] = _from_older(cells, durations, seed)
        count = sum(map(len, durations.values()))
        estimate["basis"] = f"the durations of {count} older cells; 95 % interval by the bootstrap, seed {seed}"
    elif hints is not None and cells:
        share = environments * float(hints.get("environment_s", 0.0)) / len(cells)
        seconds = [share + float(hints.get("cell_s", 0.0)) for _ in cells]
        gpu = sum(each * cell.gpus for each, cell in zip(seconds, cells)) / 3600.0
        estimate["expected"] = {"job_hours": sum(seconds) / 3600.0, "gpu_hours": gpu}
        estimate["basis"] = "what the matrix says of the cost, each environment made once"
    return estimate


def _durations(older: OutcomeTable) -> dict[str, np.ndarray]:
    """Return how long older cells took, by framework; cells whose times are not known are left out."""
    known: dict[str, list[float]] = {}
    for outcome in older.outcomes():
        duration = outcome.duration_s
        if duration is not None and duration >= 0 and outcome.status not in ("missing", "cancelled"):
            known.setdefault(str(outcome.labels.get("framework", "(unnamed)")), []).append(duration)
    return {framework: np.array(values) for framework, values in known.items()}


def _from_older(cells: Sequence[Cell], durations: dict[str, np.ndarray], seed: int) -> dict[str, Any]:
    """Return the expected hours with their interval."""
    everything = np.concatenate(list(durations.values()))
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.framework if cell.framework in durations else "", []).append(cell)
    stream = np.random.default_rng(seed)
    total, samples = np.zeros(2), np.zeros((2, _RESAMPLES))
    for framework, members in sorted(groups.items()):
        values = durations.get(framework, everything)
        weights = np.array([len(members), sum(cell.gpus for cell in members)]) / 3600.0
        means = stream.choice(values, (_RESAMPLES, len(values))).mean(axis=1)
        total += weights * values.mean()
        samples += weights[:, None] * means
    low, high = np.quantile(samples, (0.025, 0.975), axis=1)
    return {
        "job_hours": float(total[0]),
        "job_hours_interval": [float(low[0]), float(high[0])],
        "gpu_hours": float(total[1]),
        "gpu_hours_interval": [float(low[1]), float(high[1])],
    }
