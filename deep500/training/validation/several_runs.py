"""Statistics over several runs of one training, which differ in their seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.quantiles import quantile_interval, samples_needed

__all__ = ["run_statistics"]


def run_statistics(values: Mapping[str, Sequence[float]], confidence: float = 0.95) -> dict[str, dict[str, Any]]:
    """Return, for each metric, the median over the runs and what can be said of it.

    The interval is that of the median from order statistics (:func:`~deep500.measure.statistics.quantile_interval`),
    exact for any continuous distribution; it needs six runs for a confidence of 95 %. With fewer there is none, and
    ``note`` says how many are missing. A value that is NaN, of a run that did not measure it, makes median and interval
    unknown: leaving it out would be a choice.

    Args:
        values: The values of all runs by metric, in the order of the runs.
        confidence: The confidence, between 0 and 1.

    Returns:
        For each metric ``runs``, ``values``, ``median``, ``minimum``, ``maximum``, ``interval`` (``low``, ``high``,
        ``confidence``, ``coverage``; ``None`` where there is none) and ``note``.

    Raises:
        MeasurementError: A metric has no values, or the confidence is none.

    Example:
        >>> found = run_statistics({"accuracy": [97.0, 98.0, 96.5]})["accuracy"]
        >>> found["median"], found["interval"], found["note"]
        (97.0, None, '3 runs; an interval of the median at 95 % needs 6')
    """
    needed = samples_needed(0.5, confidence)
    return {name: _of(name, [float(v) for v in row], confidence, needed) for name, row in values.items()}


def _of(name: str, row: list[float], confidence: float, needed: int) -> dict[str, Any]:
    if not row:
        raise MeasurementError(f"The metric {name!r} has no values, so there is nothing to tell of its runs.")
    known = not any(map(math.isnan, row))
    interval, note = None, ""
    if not known:
        note = f"{sum(map(math.isnan, row))} of {len(row)} runs did not measure it"
    elif len(row) < needed:
        runs = f"{len(row)} run{'s' if len(row) > 1 else ''}"
        note = f"{runs}; an interval of the median at {100 * confidence:.6g} % needs {needed}"
    else:
        found = quantile_interval(row, 0.5, confidence)
        interval = {
            "low": found.low,
            "high": found.high,
            "confidence": found.confidence_requested,
            "coverage": found.coverage,
        }
    return {
        "runs": len(row),
        "values": row,
        "median": float(np.median(row)) if known else math.nan,
        "minimum": min(row) if known else math.nan,
        "maximum": max(row) if known else math.nan,
        "interval": interval,
        "note": note,
    }
