"""Distributions with a known median, as run times have them, and the coverage of intervals over many repetitions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from deep500.measure.statistics.quantiles import quantile_intervals
from deep500.measure.statistics.stopping import SequentialStop

Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]


def lognormal(sigma: float) -> Draw:
    return lambda rng, shape: rng.lognormal(0.0, sigma, shape)


def bimodal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """70 % fast samples around 1, 30 % slow ones around 2."""
    return np.where(rng.random(shape) < 0.7, 1.0, 2.0) + rng.normal(0, 0.05, shape)


#: By name: how to draw, and the median. The bimodal median is where the fast mode alone reaches 0.5 / 0.7.
DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "lognormal 0.5": (lognormal(0.5), 1.0),
    "lognormal 1": (lognormal(1.0), 1.0),
    "bimodal 70:30": (bimodal, 1.0 + 0.05 * 0.5659488219328631),
}


def median_coverage(name: str, size: int, repetitions: int = 10_000) -> float:
    """Return how often the nominal 95 % interval holds the median."""
    draw, median = DISTRIBUTIONS[name]
    intervals = quantile_intervals(draw(np.random.default_rng(size), (repetitions, size)))
    return float(np.mean((intervals.low <= median) & (median <= intervals.high)))


def sequential_coverage(name: str, stop: SequentialStop, repetitions: int = 5000, chunk: int = 500) -> float:
    """Return how often the interval holds the median when sampling stops by the rule."""
    draw, median = DISTRIBUTIONS[name]
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(math.ceil(repetitions / chunk)):
        rows = draw(rng, (chunk, stop.maximum))
        for size in stop.sizes:
            intervals = quantile_intervals(rows[:, :size])
            stops = stop.is_narrow(intervals) | (size == stop.maximum)
            held += int(np.sum(stops & (intervals.low <= median) & (median <= intervals.high)))
            rows = rows[~stops]
            if not len(rows):
                break
    return held / (math.ceil(repetitions / chunk) * chunk)


def autoregressive(rng: np.random.Generator, rows: int, size: int, rho: float) -> NDArray[np.float64]:
    """Return normal series whose neighbours correlate by ``rho``."""
    noise = rng.normal(size=(rows, size))
    series = np.empty_like(noise)
    series[:, 0] = noise[:, 0] / math.sqrt(1 - rho**2)
    for i in range(1, size):
        series[:, i] = rho * series[:, i - 1] + noise[:, i]
    return series
