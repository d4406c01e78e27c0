"""Measurements to draw, and the artists of a picture by their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import (
    Design,
    LaunchSamples,
    Measurement,
    MetricSamples,
    ProcessRecord,
    Statistic,
    System,
)
from deep500.measure.workload import Work

Rows = Sequence[Sequence[float]]


def samples(rows: Rows, name: str = "WallclockTime", unit: str = "s", **parts: Any) -> MetricSamples:
    """Return the samples of one metric, launch by launch."""
    launches = tuple(LaunchSamples(number, tuple(map(float, row))) for number, row in enumerate(rows))
    contents = {"kind": MetricKind.COST, "direction": Direction.LOWER, **parts}
    return MetricSamples(name, unit, launches=launches, **contents)


def measurement(
    *rows: Rows, labels: Sequence[str] = (), statistic: Statistic | None = None, **parts: Any
) -> Measurement:
    """Return a measurement with one system for each list of rows."""
    labels = labels or [f"system {number}" for number in range(len(rows))]
    systems = [
        System(label, label, {"problem": "x"}, {}, None, None, Work(), (samples(own),))
        for label, own in zip(labels, rows)
    ]
    launches = max(map(len, rows))
    contents: dict[str, Any] = {
        "deep500": "1.0",
        "started": "2026-01-01T00:00:00.000+00:00",
        "ended": "2026-01-01T00:01:00.000+00:00",
        "design": Design(tuple(labels), launches, statistic=statistic or Statistic()),
        "systems": tuple(systems),
        "processes": (ProcessRecord("2026-01-01T00:00:00.000+00:00", True, 0.1, 1.0, 0.01),) * launches,
        "environment": {"sections": {"cpu": {"model": "Test CPU"}}},
        **parts,
    }
    return Measurement(**contents)


def draws(launches: int, size: int, *, median: float = 2e-3, seed: int = 0) -> list[list[float]]:
    """Return rows of a lognormal distribution, with some spread between launches."""
    stream = np.random.default_rng(seed)
    return [list(median * stream.lognormal(0, 0.05) * stream.lognormal(0, 0.1, size)) for _ in range(launches)]


def axes_of(figure: Figure) -> Axes:
    """Return the only axes of a picture."""
    (axes,) = figure.axes
    return axes


def lines(figure: Figure, label: str) -> list[Any]:
    """Return the lines with a label, in the order of the systems."""
    return [line for line in axes_of(figure).lines if line.get_label() == label]


def legend_of(figure: Figure) -> str:
    """Return the texts of the legend."""
    return "\n".join(text.get_text() for text in figure.legends[0].get_texts())
